"""Threads that live collections share: few, in order, and not ended by what fails in them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from tercet.index.live.threads import Alarms, Workers

SECONDS = 30.0


@pytest.fixture
def alarms() -> Iterator[Alarms]:
    alarms = Alarms()
    yield alarms
    alarms.close()


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_jobs_are_done_in_order_by_as_many_threads_as_are_wanted_at_most(alarms: Alarms) -> None:
    workers, go_on, done = Workers("some", 3, alarms), threading.Event(), []

    def job(number: int) -> Callable[[], None]:
        def work() -> None:
            assert go_on.wait(SECONDS)
            done.append((number, threading.current_thread().name))

        return work

    for number in range(20):
        workers.submit(job(number))
    assert len(workers.threads) == 3
    go_on.set()
    wait_until(lambda: len(done) == 20)
    assert {name for _, name in done} == {"some"}
    assert sorted(number for number, _ in done) == list(range(20))
    workers.submit(job(20))  # an idle one does it
    wait_until(lambda: len(done) == 21)
    assert len(workers.threads) == 3
    wait_until(lambda: all(thread.ident is not None for thread in workers.threads))
    workers.close()
    for thread in workers.threads:
        thread.join(SECONDS)
        assert not thread.is_alive()


def test_what_fails_ends_no_thread(alarms: Alarms, caplog: pytest.LogCaptureFixture) -> None:
    workers, done = Workers("some", 1, alarms), threading.Event()

    def fail() -> None:
        raise ValueError("broken")

    alarms.call_at(0.0, fail)
    workers.submit(fail)
    workers.submit(done.set)
    assert done.wait(SECONDS)
    wait_until(lambda: len(caplog.records) == 2)
    workers.close()


def test_a_thread_that_cannot_be_started_is_tried_again(
    alarms: Alarms, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tercet.index.live.threads.START_SECONDS", 0.01)
    alarms.call_at(0.0, lambda: None)  # so that its own thread is there
    failures, start = [RuntimeError("can't start new thread")], threading.Thread.start

    def none_left(self: threading.Thread) -> None:
        if failures:
            raise failures.pop()
        start(self)

    monkeypatch.setattr(threading.Thread, "start", none_left)
    workers, done = Workers("some", 1, alarms), threading.Event()
    workers.submit(done.set)
    assert done.wait(SECONDS)
    assert not failures
    workers.close()


def test_alarms_ring_in_order_unless_they_are_cancelled(alarms: Alarms) -> None:
    now, rung, all_set, last = time.monotonic(), [], threading.Event(), threading.Event()
    alarms.call_at(now, lambda: all_set.wait(SECONDS))  # none of the others rings before all are set
    alarms.call_at(now + 0.2, last.set)
    alarms.call_at(now + 0.1, lambda: rung.append("second"))
    alarms.call_at(now + 0.15, lambda: rung.append("never")).cancel()
    alarms.call_at(now + 0.05, lambda: rung.append("first"))
    all_set.set()
    assert last.wait(SECONDS)
    assert rung == ["first", "second"]
