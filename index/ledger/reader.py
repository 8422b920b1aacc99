"""Reads a ledger, also while a writer in this process or another goes on."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

from tercet.index.errors import DamagedIndexError
from tercet.index.ledger.file import connect_read_only, index_errors, log_of, shared_memory_of
from tercet.index.ledger.records import LedgerEntry, StoredAnswer

KEPT_SECONDS = 24 * 3600
READ_BYTES = 4 * 2**20  # of payloads read at once, and one more

LAST_POSITION = "SELECT max(trimmed, (SELECT coalesce(max(position), 0) FROM entry)) FROM state"


class LedgerReader:
    """A ledger opened to read. It changes nothing and needs no lock.

    A process that has a ledger open must not open and close its files by other means than these classes:
    POSIX drops a process's locks on a file when any descriptor of it is closed.

    Methods may be called from any thread; they take turns, but iterations of `entries` wait for none. All
    raise DamagedIndexError, StorageError, or CollectionBusyError where another program holds the file. After
    an error the next call opens the file anew.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._closed = False

    @classmethod
    def open(cls, path: Path) -> Self:
        """Opens a ledger; DamagedIndexError where it is missing, is none, or has another version."""
        ledger = cls(path)
        with ledger._session():
            return ledger

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the file; what was appended stays."""
        with self._lock:
            self._closed = True
            self._drop()

    @property
    def last_position(self) -> int:
        """The position of the last entry that was appended, trimmed or not; 0 before the first."""
        return int(self._row(LAST_POSITION)[0])

    @property
    def trimmed_position(self) -> int:
        """Entries up to here have been trimmed; 0 where none were."""
        return int(self._row("SELECT trimmed FROM state")[0])

    @property
    def total_bytes(self) -> int:
        """Bytes on disk: the file, its log, and the index of the log."""
        total = 0
        for path in (self.path, log_of(self.path), shared_memory_of(self.path)):
            with contextlib.suppress(FileNotFoundError):  # the last to close removes the log
                total += path.stat().st_size
        return total

    def answer_of(self, key: str, now: float | None = None) -> StoredAnswer | None:
        """What was stored under an idempotency key less than a day before `now`, seconds since 1970."""
        row = self._row(
            "SELECT request_sha256, answer, position FROM answer WHERE key = ? AND stored_at > ?",
            (key, self._seconds(now) - KEPT_SECONDS),
        )
        return None if row is None else StoredAnswer(*row)

    def entries(self, after: int) -> Iterator[tuple[int, LedgerEntry]]:
        """Positions and entries after a position, in order, holding a few MiB at a time.

        A slow iteration holds up neither appends nor trims: it reads a piece, lets go, and sees what was
        appended meanwhile. Raises DamagedIndexError where an entry is damaged or missing. That includes
        entries after `after` that were trimmed, before the iteration or during it: none is left out silently.
        """
        with index_errors(self.path), contextlib.closing(connect_read_only(self.path)) as connection:
            while rows := self._read(connection, after):
                for position, kind, checksum, payload in rows:
                    if position != after + 1:
                        raise self._damaged(f"the entry of position {after + 1} is missing")
                    entry = LedgerEntry(kind, payload)
                    if checksum != entry.crc32:
                        raise self._damaged(f"the entry of position {position} does not have its checksum")
                    yield position, entry
                    after = position

    def check(self) -> None:
        """Reads everything. Raises DamagedIndexError for the first damage that it finds."""
        (finding,) = self._row("PRAGMA quick_check(1)")
        if finding != "ok":
            raise self._damaged(str(finding))
        for _ in self.entries(self.trimmed_position):
            pass

    def _read(self, connection: sqlite3.Connection, after: int) -> list[tuple[int, str, int, bytes]]:
        """The next rows, of one view."""
        connection.execute("BEGIN")
        try:
            (trimmed,) = connection.execute("SELECT trimmed FROM state").fetchone()
            if trimmed > after:
                raise self._damaged(f"entries up to position {trimmed} are trimmed, {after + 1} is asked for")
            rows = []
            size = 0
            for row in connection.execute(
                "SELECT position, kind, crc32, payload FROM entry WHERE position > ? ORDER BY position",
                (after,),
            ):
                rows.append(row)
                size += len(row[3])
                if size >= READ_BYTES:
                    break
            return rows
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")

    def _row(self, statement: str, values: tuple[Any, ...] = ()) -> Any:
        """The first row of what a statement gives, None without one."""
        with self._session() as connection:
            return connection.execute(statement, values).fetchone()

    @contextlib.contextmanager
    def _session(self) -> Iterator[sqlite3.Connection]:
        """The connection, for one thread at a time. An exception closes it; the next session opens anew."""
        with self._lock:
            if self._closed:
                raise ValueError(f"{self.path} is closed; open the ledger again")
            try:
                with index_errors(self.path):
                    if self._connection is None:
                        self._connection = self._connect()
                    yield self._connection
            except BaseException:
                self._drop()
                raise

    def _connect(self) -> sqlite3.Connection:
        return connect_read_only(self.path)

    def _drop(self) -> None:
        """Closes the connection; a transaction that has not ended is undone."""
        if self._connection is not None:
            with contextlib.suppress(sqlite3.Error):  # the error that led here is the one to tell
                self._connection.close()
            self._connection = None

    def _seconds(self, now: float | None) -> float:
        """Seconds since 1970, the clock's where none are given."""
        return time.time() if now is None else now

    def _damaged(self, what: str) -> DamagedIndexError:
        return DamagedIndexError(f"{self.path}: {what}; restore the collection from a backup")
