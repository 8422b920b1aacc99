"""Measured speed, by hand."""

import math

import pytest

from tercet.service.load.pace import GUESS_SECONDS, MEMORY_SECONDS, Pace


def test_the_first_guess_holds_until_something_is_measured() -> None:
    pace = Pace(2000)
    assert pace.seconds(500) == pytest.approx(0.25)
    pace.observe(1000, 0.1)  # at 10,000 a second
    expected = (1000 + math.exp(-0.05) * 2000 * GUESS_SECONDS) / (0.1 + math.exp(-0.05) * GUESS_SECONDS)
    assert 1 / pace.seconds(1) == pytest.approx(expected)


def test_short_work_says_little_beside_long_work() -> None:
    pace = Pace(1)
    for _ in range(20):
        pace.observe(10, 0.01)  # 1,000 a second
    pace.observe(2000, 0.2)  # 10,000 a second
    assert 1 / pace.seconds(1) > 5000


def test_what_was_measured_long_ago_is_forgotten() -> None:
    pace = Pace(1)
    for _ in range(100):
        pace.observe(1000, 0.1)
    for _ in range(60):  # three times the memory, at a tenth of the speed
        pace.observe(100, MEMORY_SECONDS / 20)
    assert 1000 < 1 / pace.seconds(1) < 1500
