"""The ledger of a live collection: accepted operations, forced to the disk before they are acknowledged.

Entries are opaque. Each append is one transaction, there whole or not at all. Positions grow by one and are
never given twice. Published segments take entries over; then `trim` removes them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from tercet.index.errors import SearchIndexError, StorageFullError, WriteUnknownError
from tercet.index.files.content import missing
from tercet.index.ledger.clock import LedgerClock
from tercet.index.ledger.file import PAGE_BYTES, connect, create
from tercet.index.ledger.reader import KEPT_SECONDS, LAST_POSITION, LedgerReader
from tercet.index.ledger.records import IdempotencyKey, LedgerEntry

# Free space that is kept for entries to come; more than it is given back.
SPARE_BYTES = 256 * 2**20

# What one transaction of a trim removes or moves at most, so that appends get their turn between.
STEP_ENTRIES = 1000
STEP_BYTES = 16 * 2**20
STEP_ANSWERS = 1000

# The last position of a step: those before it hold less than STEP_BYTES. The innermost query gives lengths
# alone, which SQLite knows without reading payloads; the one around it copies its rows.
_STEP = """
SELECT max(position) FROM (
    SELECT position, sum(size) OVER (ORDER BY position) - size AS before
    FROM (SELECT position, length(payload) AS size FROM entry WHERE position <= (SELECT trimmed FROM state)
          ORDER BY position LIMIT ?)
) WHERE before < ?
"""


class Ledger(LedgerReader):
    """A ledger opened to write, by one process at a time: the caller holds the collection's lock.

    Beside `append`, each method may wait for one transaction of another thread.
    """

    def __init__(self, path: Path, spare_bytes: int = SPARE_BYTES) -> None:
        super().__init__(path)
        self._spare_bytes = spare_bytes
        # From the opening on; acknowledged: the last position of which a caller knows.
        self._acknowledged: int | None = None
        self._clock: LedgerClock | None = None

    def append(
        self, entries: Sequence[LedgerEntry], *, least_position: int = 1, now: float | None = None
    ) -> int:
        """Adds entries, all or none, and returns the position of the last once they are forced to the disk.

        least_position: of the first entry, where a manifest knows of positions that this file does not: one
        above the manifest's. All entries below it count as trimmed. now: seconds since 1970.

        Raises StorageFullError or StorageError where nothing of them is there, nor will be;
        WriteUnknownError where that cannot be told. What was unknown is undone by the next call that
        succeeds; only where this process ends before it, the entries may be found at the next opening.
        ValueError for a key that is in use.
        """
        if not entries:
            raise ValueError("an append needs at least one entry")
        stored_at = self._seconds(now)
        committing = False
        try:
            with self._session() as connection:
                connection.execute("BEGIN IMMEDIATE")
                first = self._first_position(connection, least_position)
                for position, entry in enumerate(entries, first):
                    _insert(connection, position, entry, stored_at)
                _forget_answers(connection, stored_at)
                committing = True
                connection.execute("COMMIT")
                self._acknowledged = first + len(entries) - 1
        except StorageFullError:
            raise  # told of a write, and the mark of a commit is the last one: nothing is there
        except BaseException as error:
            if committing:
                self._settle(error)
            raise
        return self._acknowledged

    def trim(self, up_to: int, *, now: float | None = None) -> None:
        """Removes entries of positions up to this one, and answers of more than a day ago.

        Their space is used again, and given back to the file system beyond `spare_bytes` and what is in use.
        They are gone at once for readers; the space follows in steps, which a crash may cut short and the
        next trim takes up.
        """
        with self._session() as connection:
            connection.execute("UPDATE state SET trimmed = max(trimmed, ?)", (up_to,))
        while self._remove_step():
            pass
        while self._forget_step(self._seconds(now)):
            pass
        while self._shrink_step():
            pass

    def forget_answers(self, up_to: int) -> None:
        """Removes the answers of positions up to this one, since what they acknowledge is to be taken back.

        A repeat of such a write is carried out again. Other threads append between the steps.
        """
        removed = STEP_ANSWERS
        while removed == STEP_ANSWERS:
            with self._session() as connection:
                removed = connection.execute(
                    "DELETE FROM answer WHERE position IN "
                    "(SELECT position FROM answer WHERE position <= ? ORDER BY position LIMIT ?)",
                    (up_to, STEP_ANSWERS),
                ).rowcount

    def _connect(self) -> sqlite3.Connection:
        """Opens the file, made where it is missing, moves its log into it and forces one transaction.

        What an earlier process or a failed append left in the log, whole but perhaps not on the disk, is then
        either part of the file, and forced, or overwritten. What this object did not acknowledge is undone.
        """
        known = self._acknowledged
        if not self.path.exists():
            if known is not None:
                raise missing(self.path)
            create(self.path)
        connection = connect(self.path)
        try:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            connection.execute("BEGIN IMMEDIATE")
            if known is not None:
                connection.execute("DELETE FROM entry WHERE position > ?", (known,))
                connection.execute("DELETE FROM answer WHERE position > ?", (known,))
            connection.execute("UPDATE state SET opened = opened + 1")
            connection.execute("COMMIT")
            if known is None:
                self._clock = LedgerClock(_newest_answer(connection))
                self._acknowledged = _last_position(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _seconds(self, now: float | None) -> float:
        """By the ledger's own clock, by which answers were stored; the system's may be set meanwhile."""
        return self._clock.now() if now is None and self._clock is not None else super()._seconds(now)

    def _first_position(self, connection: sqlite3.Connection, least: int) -> int:
        following = _last_position(connection) + 1
        if following >= least:
            return following
        connection.execute("UPDATE state SET trimmed = ?", (least - 1,))
        return least

    def _settle(self, error: BaseException) -> None:
        """After a failed commit: opens anew, which undoes it. Raises WriteUnknownError where that fails."""
        try:
            with self._session():
                pass
        except SearchIndexError as second:
            raise WriteUnknownError(
                f"{error}; whether the write is there is unknown, as {self.path} cannot be opened again "
                f"({second}); repeat the write when it can"
            ) from error

    def _remove_step(self) -> bool:
        """Deletes some trimmed entries; False where none were left."""
        with self._session() as connection:
            (last,) = connection.execute(_STEP, (STEP_ENTRIES, STEP_BYTES)).fetchone()
            if last is not None:
                connection.execute("DELETE FROM entry WHERE position <= ?", (last,))
            return last is not None

    def _forget_step(self, now: float) -> bool:
        """Deletes some old answers; False where none were left."""
        with self._session() as connection:
            return _forget_answers(connection, now)

    def _shrink_step(self) -> bool:
        """Moves the end of the file into free space, and cuts it; False where enough was given back."""
        with self._session() as connection:
            (free,) = connection.execute("PRAGMA freelist_count").fetchone()
            (pages,) = connection.execute("PRAGMA page_count").fetchone()
            if free * PAGE_BYTES <= self._spare_bytes or 2 * free <= pages:
                return False
            # A page each step of the statement: `execute` takes one step, a script takes all. The file is cut
            # when its log is moved into it.
            connection.executescript(f"PRAGMA incremental_vacuum({STEP_BYTES // PAGE_BYTES})")
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            return True


def _last_position(connection: sqlite3.Connection) -> int:
    (last,) = connection.execute(LAST_POSITION).fetchone()
    return int(last)


def _newest_answer(connection: sqlite3.Connection) -> float | None:
    row = connection.execute("SELECT stored_at FROM answer ORDER BY position DESC LIMIT 1").fetchone()
    return None if row is None else float(row[0])


def _insert(connection: sqlite3.Connection, position: int, entry: LedgerEntry, stored_at: float) -> None:
    connection.execute(
        "INSERT INTO entry VALUES (?, ?, ?, ?)",
        (position, entry.kind, entry.crc32, entry.payload),
    )
    if entry.key is not None:
        _insert_answer(connection, position, entry.key, stored_at)


def _insert_answer(
    connection: sqlite3.Connection, position: int, key: IdempotencyKey, stored_at: float
) -> None:
    """Stores an answer; an old one of the same key is replaced, and one of the last day is a ValueError."""
    row = connection.execute("SELECT position, stored_at FROM answer WHERE key = ?", (key.key,)).fetchone()
    if row is not None and row[1] > stored_at - KEPT_SECONDS:
        raise ValueError(
            f"the idempotency key {key.key!r} is in use by position {row[0]}; ask answer_of before, "
            "and keep repeats out of one append"
        )
    connection.execute(
        "INSERT OR REPLACE INTO answer VALUES (?, ?, ?, ?, ?)",
        (position, key.key, key.request_sha256, key.answer, stored_at),
    )


def _forget_answers(connection: sqlite3.Connection, now: float) -> bool:
    """Deletes some of the oldest answers, those of more than a day ago; whether there were any."""
    oldest = connection.execute("SELECT stored_at FROM answer ORDER BY position LIMIT 1").fetchone()
    if oldest is None or oldest[0] > now - KEPT_SECONDS:
        return False
    connection.execute(
        "DELETE FROM answer WHERE stored_at <= ? AND position IN "
        "(SELECT position FROM answer ORDER BY position LIMIT ?)",
        (now - KEPT_SECONDS, STEP_ANSWERS),
    )
    return True
