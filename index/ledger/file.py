"""The SQLite file of a ledger: made, opened with its settings and checked; SQLite's errors become ours.

Settings, and why:

- WAL with `synchronous=FULL`: a transaction is appended to `ledger.sqlite-wal` and forced there before COMMIT
  returns, one force each. The shared memory file `-shm` is an index of that log; it need not survive a crash.
- `locking_mode` stays NORMAL: EXCLUSIVE would do without `-shm`, but lock out readers in other processes.
- Only the writer's one connection writes or checkpoints. Readers open read-only, which never does.
- `secure_delete=OFF`: some builds overwrite deleted content with zeros. That doubles what is written, as each
  freed page then goes through the log again.
- Pages of 4 KiB: an entry of 10 kB writes 3.5 times its size, log and file together; with pages of 16 KiB
  it writes 10 times. An entry of 1 MB writes twice its size with either.
- A checkpoint each 1,000 pages of the log (4 MiB) moves them to the file. Larger ones write no less for large
  entries, and make the commit that runs them wait longer. The log returns to its beginning after each, so it
  stays at that size and one transaction, unless a reader in between holds it.
- `auto_vacuum=INCREMENTAL`: free pages are used again, and can be given back in bounded steps.
"""

from __future__ import annotations

import contextlib
import errno
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from tercet.index.errors import (
    CollectionBusyError,
    DamagedIndexError,
    SearchIndexError,
    StorageError,
    StorageFullError,
)
from tercet.index.files.content import missing
from tercet.index.files.directory import put_in_place, remove_file
from tercet.index.wording import reason_of
from tercet.models.files import force

APPLICATION_ID = int.from_bytes(b"TrcL", "big")
FORMAT_VERSION = 1

# How long a statement waits for another process that holds the file, such as a person with SQLite's shell.
BUSY_SECONDS = 5.0
PAGE_BYTES = 4096
LOG_PAGES = 1000

# Kept entries have the positions trimmed + 1 to the last one, without gaps. Answers outlive their entries.
_SCHEMA = f"""
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
PRAGMA page_size = {PAGE_BYTES};
PRAGMA auto_vacuum = INCREMENTAL;
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {FORMAT_VERSION};
CREATE TABLE state (trimmed INTEGER NOT NULL, opened INTEGER NOT NULL);
INSERT INTO state VALUES (0, 0);
CREATE TABLE entry (
    position INTEGER PRIMARY KEY, kind TEXT NOT NULL, crc32 INTEGER NOT NULL, payload BLOB NOT NULL
);
CREATE TABLE answer (
    position INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, request_sha256 TEXT NOT NULL,
    answer TEXT NOT NULL, stored_at REAL NOT NULL
);
PRAGMA journal_mode = WAL;
"""  # noqa: S608 - of constants. No journal, no forces: the file is forced whole before it gets its name

_FULL = {sqlite3.SQLITE_FULL}
_FAILED = {sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM}
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_SCHEMA}
_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}


def log_of(path: Path) -> Path:
    """The write-ahead log beside a ledger."""
    return path.with_name(f"{path.name}-wal")


def shared_memory_of(path: Path) -> Path:
    """The index of the log, shared by processes."""
    return path.with_name(f"{path.name}-shm")


@contextlib.contextmanager
def index_errors(path: Path) -> Iterator[None]:
    """SQLite's and the operating system's errors about this file are raised as the index's."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", None)  # None: the module's own, as for a closed connection
        translated = None if code is None else _error_of(code & 0xFF, path, _reason(error))
        if translated is None:
            raise
        raise translated from error
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        raise (_full if full else _failed)(path, reason_of(error)) from error


def create(path: Path) -> None:
    """Makes an empty ledger and forces it and its name to the disk: it is there whole or not at all.

    Raises DamagedIndexError where the log of a ledger is there without the ledger.
    """
    log = log_of(path)
    if log.exists() and log.stat().st_size > 0:
        raise DamagedIndexError(
            f"{path} is missing, but {log.name} beside it holds what was written; restore the ledger, "
            "or remove the log to go on without"
        )
    new = path.with_name(f".{path.name}.new")
    for leftover in (log, shared_memory_of(path), new):
        remove_file(leftover)
    with contextlib.closing(sqlite3.connect(new, isolation_level=None)) as connection:
        connection.executescript(_SCHEMA)
    force(new)
    put_in_place(new, path)


def connect(path: Path) -> sqlite3.Connection:
    """The writer's connection. Raises SQLite's errors, and DamagedIndexError for another kind of file."""
    connection = _connection(path, "mode=rw")
    try:
        (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        if mode != "wal":
            raise StorageError(f"{path}: the file system has no memory shared by processes; use a local disk")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA fullfsync = ON")  # macOS, where fsync alone stops at the disk's cache
        connection.execute("PRAGMA secure_delete = OFF")
        connection.execute(f"PRAGMA wal_autocheckpoint = {LOG_PAGES}")
        connection.execute(f"PRAGMA journal_size_limit = {LOG_PAGES * PAGE_BYTES}")
    except BaseException:
        connection.close()
        raise
    return connection


def connect_read_only(path: Path) -> sqlite3.Connection:
    """A connection that changes nothing and needs no lock, also beside a writer in another process.

    Where the folder cannot be written and there is no log, the file is whole by itself and is read without
    locks. Raises as `connect` does.
    """
    try:
        return _connection(path, "mode=ro")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF not in _FAILED or log_of(path).exists():
            raise
        return _connection(path, "immutable=1")


def _connection(path: Path, mode: str) -> sqlite3.Connection:
    """Opens a file that has the ledger's marks, in autocommit: transactions begin with BEGIN alone."""
    if not path.exists():
        raise missing(path)
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?{mode}",
        uri=True,
        isolation_level=None,
        timeout=BUSY_SECONDS,
        check_same_thread=False,
    )
    try:
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if application != APPLICATION_ID:
            raise DamagedIndexError(f"{path} is not a ledger; restore it from a backup")
        if version != FORMAT_VERSION:
            raise DamagedIndexError(
                f"{path} has version {version}, and this program reads version {FORMAT_VERSION}; "
                "use the program that wrote it"
            )
    except BaseException:
        connection.close()
        raise
    return connection


def _error_of(code: int, path: Path, reason: str) -> SearchIndexError | None:
    """The index's error for a primary result code of SQLite, None where it tells of a mistake of ours."""
    if code in _FULL:
        return _full(path, reason)
    if code in _FAILED:
        return _failed(path, reason)
    if code in _DAMAGED:
        return DamagedIndexError(f"{path} is damaged ({reason}); restore it from a backup")
    if code in _BUSY:
        return CollectionBusyError(
            f"the ledger of collection {path.parent.name!r} is held by another process ({reason}); try again "
            "later"
        )
    return None


def _reason(error: sqlite3.Error) -> str:
    return f"{error}, {error.sqlite_errorname}"


def _full(path: Path, reason: str) -> StorageFullError:
    return StorageFullError(f"{path}: no space left on the disk ({reason}); free some and try again")


def _failed(path: Path, reason: str) -> StorageError:
    return StorageError(
        f"{path}: the disk or its file system failed ({reason}); see that it is sound, mounted for writing "
        "and not over its quota"
    )
