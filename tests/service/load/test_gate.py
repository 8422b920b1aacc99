"""Who is turned away at the wire."""

from typing import Any

import pytest

from tercet.service.exceptions import OverloadedError
from tercet.service.load import gate as module
from tercet.service.load.admission import Admission
from tercet.service.load.gate import FEW, LATE_SECONDS, SEARCHES, VERY_LATE_SECONDS, Gate, Passage
from tercet.service.load.loop import LoopDelay


@pytest.fixture
def clock(monkeypatch: Any) -> Any:
    """The monotonic clock of the gate: `clock.now` is set by the test."""

    class Clock:
        now = 0.0

        def monotonic(self) -> float:
            return self.now

    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    return clock


def test_few_requests_are_let_in_however_late_the_loop_is() -> None:
    gate = Gate(LoopDelay(), 2.0)
    for _ in range(FEW):
        gate.require("/embed", 10.0, None)
        gate.begin("/embed")
    with pytest.raises(OverloadedError, match=r"10\.00 s late") as refused:
        gate.require("/embed", 10.0, None)
    assert (refused.value.reason, refused.value.retry_after_seconds) == ("loop", 1)
    gate.end("/embed", answered=True)
    gate.require("/embed", 10.0, None)


def test_many_are_turned_away_while_the_last_beats_were_late_or_one_very_late() -> None:
    loop = LoopDelay()
    gate = Gate(loop, 2.0)
    for _ in range(FEW):
        gate.begin("/embed")
    gate.require("/embed", VERY_LATE_SECONDS, None)
    with pytest.raises(OverloadedError):  # the kernel knows better than the last beat
        gate.require("/embed", VERY_LATE_SECONDS + 0.01, None)
    loop.mean_seconds = LATE_SECONDS
    gate.require("/embed", 0.0, None)
    loop.mean_seconds = LATE_SECONDS + 0.01
    with pytest.raises(OverloadedError):
        gate.require("/embed", 0.0, None)


def test_searches_are_let_in_by_how_many_are_answered_in_a_second(clock: Any) -> None:
    """20 a second, so that 20 in work are one second, three quarters of the longest wait."""
    gate = Gate(LoopDelay(), 4 / 3)
    for _ in range(20):
        gate.begin(SEARCHES)
    for _ in range(400):
        clock.now += 0.05
        gate.end(SEARCHES, answered=True)
        gate.begin(SEARCHES)
    assert gate.search_seconds == pytest.approx(1.0, rel=0.01)
    gate.begin(SEARCHES)
    for _ in range(400):  # those that are refused show nothing of how fast searches are
        gate.begin(SEARCHES)
        gate.end(SEARCHES, answered=False)
    with pytest.raises(
        OverloadedError, match=r"21 searches are in work, and one more would take 1\.. s"
    ) as told:
        gate.require(SEARCHES, 0.0, None)
    assert told.value.retry_after_seconds == pytest.approx(0.05, rel=0.1)
    gate.require("/embed", 0.0, None)  # of any size, so judged by its tokens
    for _ in range(6):
        gate.end(SEARCHES, answered=True)
    gate.require(SEARCHES, 0.0, None)
    gate.require(SEARCHES, 0.0, "soon")  # no time at all: it is judged where the rest of it is
    with pytest.raises(OverloadedError):
        gate.require(SEARCHES, 0.0, "0.5")


def test_a_pause_without_searches_is_no_slowness(clock: Any) -> None:
    gate = Gate(LoopDelay(), 2.0)
    clock.now = 1000.0
    for _ in range(FEW):
        gate.begin(SEARCHES)
    for _ in range(100):
        clock.now += 0.01
        gate.end(SEARCHES, answered=True)
        gate.begin(SEARCHES)
    gate.require(SEARCHES, 0.0, None)
    assert gate.search_seconds < 0.2


def test_who_sends_a_body_or_reads_an_answer_is_not_in_work() -> None:
    gate = Gate(LoopDelay(), 2.0)
    passages = [Passage(gate, SEARCHES) for _ in range(FEW)]
    gate.require(SEARCHES, 10.0, None)  # their bodies are not here
    for passage in passages * 2:  # all of it came, and it is read
        passage.begin()
    with pytest.raises(OverloadedError):
        gate.require(SEARCHES, 10.0, None)
    for _ in range(2):  # its answer begins, and its task ends
        passages[0].end(answered=True)
    assert gate.in_work == FEW - 1
    gate.require(SEARCHES, 10.0, None)


def test_a_client_waits_for_its_own_searches_and_as_many_of_each_other(clock: Any) -> None:
    """30 of one are in work at 20 a second: a second and a half for it, and .05 s for another one."""
    gate = Gate(LoopDelay(), 4 / 3)
    for _ in range(30):
        gate.begin(SEARCHES, "greedy")
    for _ in range(400):
        clock.now += 0.05
        gate.end(SEARCHES, "greedy", answered=True)
        gate.begin(SEARCHES, "greedy")
    with pytest.raises(OverloadedError):
        gate.require(SEARCHES, 0.0, None, "greedy")
    gate.require(SEARCHES, 0.0, "0.06", "polite")
    with pytest.raises(OverloadedError):
        gate.require(SEARCHES, 0.0, "0.04", "polite")
    for _ in range(3):
        gate.begin(SEARCHES, "polite")
    gate.require(SEARCHES, 0.0, "0.4", "polite")  # three of its own, and four of the other
    with pytest.raises(OverloadedError):
        gate.require(SEARCHES, 0.0, "0.3", "polite")
    for _ in range(3):
        gate.end(SEARCHES, "polite", answered=True)
    gate.require(SEARCHES, 0.0, "0.06", "polite")


@pytest.mark.parametrize("path", ["/embed", "/v1/embeddings"])
def test_texts_are_turned_away_where_the_shortest_would_wait_too_long(path: str) -> None:
    """Half of the longest wait is the limit, or what the client gives; few are let in at any rate."""
    wait_seconds = 1.01
    gate = Gate(LoopDelay(), 2.0, Admission(2.0), lambda: wait_seconds)
    for _ in range(FEW):
        gate.require(path, 0.0, None)
        gate.begin(path)
    with pytest.raises(OverloadedError, match=r"would wait 1\.0 s; 1\.0 s is this server's limit") as told:
        gate.require(path, 0.0, None)
    assert (told.value.reason, told.value.retry_after_seconds) == ("wait", pytest.approx(0.01))
    gate.require("/rerank", 0.0, None)  # judged by its texts
    wait_seconds = 1.0
    gate.require(path, 0.0, None)
    with pytest.raises(OverloadedError, match="X-Request-Timeout"):
        gate.require(path, 0.0, "0.9")
    for given in ("0", "-1", "soon", "nan"):  # refused by name, where the rest of the request is judged
        gate.require(path, 0.0, given)
