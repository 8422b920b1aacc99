"""The checker of histories by which `tests/endurance/cluster/ledgers.py` judges must find what is wrong."""

from __future__ import annotations

import pytest

from tests.endurance.concurrency.linearizable import Operation, is_linearizable

NEVER = float("inf")


def write(value: str | None, begun: float, ended: float) -> Operation:
    return Operation("write", value, begun, ended)


def read(value: str | None, begun: float, ended: float) -> Operation:
    return Operation("read", value, begun, ended)


@pytest.mark.parametrize(
    ("history", "possible"),
    [
        ([], True),
        ([read(None, 0, 1)], True),
        ([write("a", 0, 1), read("a", 2, 3)], True),
        ([write("a", 0, 1), read(None, 2, 3)], False),  # an acknowledged write is lost
        ([write("a", 0, 3), read(None, 1, 2), read("a", 1, 2)], True),
        ([write("a", 0, 5), read("a", 1, 2), read(None, 3, 4)], False),  # and seen before
        ([write("a", 0, 2), write("b", 1, 3), read("a", 4, 5)], True),
        ([write("a", 0, 2), write("b", 1, 3), read("a", 4, 5), read("b", 6, 7)], False),
        ([write("a", 0, 1), write(None, 2, 3), read("a", 4, 5)], False),  # a deleted document is back
        ([write("a", 0, 1), write("b", 0, NEVER), read("a", 2, 3), read("b", 8, 9)], True),
        ([write("a", 0, 1), write("b", 0, NEVER), read("b", 2, 3), read("a", 8, 9)], False),
        ([write("a", 0, 1), write(None, 2, NEVER), read("a", 3, 4)], True),
        ([write("a", 0, 1), write(None, 5, NEVER), read(None, 3, 4)], False),
    ],
)
def test_orders_that_respect_times_and_values(history: list[Operation], possible: bool) -> None:
    assert is_linearizable(history) == possible
    assert is_linearizable(history[::-1]) == possible
