"""Lines that a thread writes, so that no reader who stalls stops who has something to say."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future

MOST_LINES = 10_000  # that wait to be written; more are dropped
BATCH_LINES = 100  # written at once
END_SECONDS = 2.0  # for what is left at the end


class QueuedWriter:
    """Formats records of logging and writes them in their order, in a thread of its own.

    What does not fit into the queue is dropped; `dropped` counts it. The thread begins with the first record.
    """

    def __init__(
        self,
        name: str,
        write: Callable[[str], None],
        formatter: logging.Formatter,
        lost: Callable[[int], None] = lambda _: None,
        most_lines: int = MOST_LINES,
        gather_seconds: float = 0.0,
    ) -> None:
        """write: called in the thread with some lines; where it raises OSError, they are lost. lost: told
        there of so many. gather_seconds: for so long the thread sleeps between two writes, as each time that
        it is woken costs more than a line.
        """
        self._name = name
        self._write = write
        self._formatter = formatter
        self._lost = lost
        self._most_lines = most_lines
        self._gather_seconds = gather_seconds
        self._waiting: deque[tuple[logging.LogRecord, Future[None] | None]] = deque()
        self._some = threading.Condition()
        self._thread: threading.Thread | None = None
        self._idle = False
        self._ended = threading.Event()
        self.dropped = 0

    def put(self, record: logging.LogRecord) -> bool:
        """Whether the record will be written, if that can be done at all."""
        return self._add(record, None)

    def written(self, record: logging.LogRecord) -> Future[None]:
        """Writes a record; the future ends when that is done, with an OSError where it fails."""
        future: Future[None] = Future()
        if not self._add(record, future):
            future.set_exception(OSError("too many lines wait to be written"))
        return future

    def close(self, seconds: float = END_SECONDS) -> None:
        """Writes what waits, for so long at most."""
        with self._some:
            self._ended.set()
            self._some.notify()
        if self._thread is not None:
            self._thread.join(seconds)

    def _add(self, record: logging.LogRecord, future: Future[None] | None) -> bool:
        with self._some:
            if len(self._waiting) >= self._most_lines:
                self.dropped += 1
                return False
            if self._thread is None:
                # Python would wait at its end for one that is no daemon, and so for whoever takes no lines.
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()
            self._waiting.append((record, future))
            if self._idle:
                self._idle = False
                self._some.notify()
        return True

    def _run(self) -> None:
        reported = 0
        while True:
            with self._some:
                while not self._waiting and not self._ended.is_set():
                    self._idle = True
                    self._some.wait()
                self._idle = False
                batch = [self._waiting.popleft() for _ in range(min(len(self._waiting), BATCH_LINES))]
                dropped = self.dropped
            if not batch:
                return
            if dropped > reported:
                self._lost(dropped - reported)
                reported = dropped
            self._write_all(batch)
            if self._gather_seconds:
                self._ended.wait(self._gather_seconds)

    def _write_all(self, batch: list[tuple[logging.LogRecord, Future[None] | None]]) -> None:
        lines = "".join(self._formatter.format(record) + "\n" for record, _ in batch)
        futures = [future for _, future in batch if future is not None]
        try:
            self._write(lines)
        except OSError as error:
            self._lost(len(batch))
            for future in futures:
                future.set_exception(error)
        else:
            for future in futures:
                future.set_result(None)
