"""Lines that a thread writes."""

import logging
import os
import threading
from concurrent.futures import Future

import pytest

from tercet.service.telemetry.queued_writer import QueuedWriter

PLAIN = logging.Formatter("%(message)s")


def record(message: str) -> logging.LogRecord:
    return logging.LogRecord("test", logging.INFO, "", 0, message, (), None)


def test_lines_are_written_in_their_order_and_all_of_them_before_the_end() -> None:
    lines: list[str] = []
    writer = QueuedWriter("test", lines.append, PLAIN)
    for number in range(1000):
        assert writer.put(record(str(number)))
    writer.close()
    assert "".join(lines).split() == [str(number) for number in range(1000)]


def test_a_reader_that_stalls_stops_nobody_and_what_is_dropped_is_told() -> None:
    taken, stalled = threading.Event(), threading.Event()
    lines: list[str] = []
    lost: list[int] = []

    def write(text: str) -> None:
        stalled.set()
        taken.wait(30)
        lines.append(text)

    writer = QueuedWriter("test", write, PLAIN, lost.append, most_lines=10)
    writer.put(record("first"))
    assert stalled.wait(30)
    assert [writer.put(record("next")) for _ in range(15)] == [True] * 10 + [False] * 5
    with pytest.raises(OSError, match="too many"):
        writer.written(record("audit")).result(0)
    writer.close(seconds=0.01)  # nor does the end wait for it
    taken.set()
    writer.close()
    assert "".join(lines).split() == ["first"] + ["next"] * 10
    assert sum(lost) == 6


def test_who_waits_for_a_line_learns_that_it_is_written_or_why_not() -> None:
    full = True
    lost: list[int] = []

    def write(_text: str) -> None:
        if full:
            raise OSError(28, os.strerror(28))

    writer = QueuedWriter("test", write, PLAIN, lost.append)
    failed: Future[None] = writer.written(record("a"))
    with pytest.raises(OSError, match="No space left"):
        failed.result(30)
    full = False
    assert writer.written(record("b")).result(30) is None
    assert lost == [1]
    writer.close()
