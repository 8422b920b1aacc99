"""What other processes do to a ledger in the tests: append, and say so, until something ends them.

Run as `python ledger_process.py COMMAND PATH …` from the repository root. Batch n has n % 3 + 1 entries, each
with the number of its batch as kind, so that a part of one would show.
"""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

from tercet.index.errors import StorageError, StorageFullError
from tercet.index.ledger.file import log_of
from tercet.index.ledger.ledger import Ledger
from tercet.index.ledger.reader import LedgerReader
from tercet.index.ledger.records import LedgerEntry

BATCH_SIZES = (1, 2, 3)
MOUNT_READ_ONLY, MOUNT_REMOUNT = 1, 32


def batch(number: int, size: int = 3000) -> list[LedgerEntry]:
    """The entries of a batch."""
    payload = bytes([number % 251]) * size
    return [LedgerEntry(str(number), payload) for _ in range(BATCH_SIZES[number % 3])]


def say(*words: object) -> None:
    """Tells the test."""
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def kept(ledger: LedgerReader) -> int:
    """Entries that are not trimmed."""
    return ledger.last_position - ledger.trimmed_position


def append(path: Path, first: int, count: int) -> None:
    """Appends batches, saying after each its number, its last position and the size of the log."""
    ledger = Ledger.open(path)
    for number in range(first, first + count):
        position = ledger.append(batch(number))
        say(number, position, log_of(path).stat().st_size)
    os._exit(0)  # as a kill: the log stays


def attempt(path: Path, count: int) -> None:
    """Appends batches one by one, saying what became of each."""
    with Ledger.open(path) as ledger:
        for number in range(count):
            try:
                say(number, ledger.append(batch(number)))
            except StorageError as error:
                say(number, type(error).__name__, *(position for position, _ in positions(path)))


def positions(path: Path) -> list[tuple[int, LedgerEntry]]:
    """What another reader finds."""
    with LedgerReader.open(path) as reader:
        return list(reader.entries(0))


def mount(folder: Path, options: str | None, flags: int = 0) -> None:
    """Mounts a small file system of memory, or changes one, where only this process sees it."""
    libc = ctypes.CDLL(None, use_errno=True)
    kind = b"tmpfs"
    if libc.mount(kind, os.fsencode(folder), kind, flags, (options or "").encode()):
        raise OSError(ctypes.get_errno(), "mount")


def full(folder: Path) -> None:
    """Fills a disk of 400 kB, frees some, and goes on."""
    mount(folder, "size=400k")
    path, ballast = folder / "ledger.sqlite", folder / "ballast"
    ballast.write_bytes(bytes(120_000))
    acknowledged = 0
    with Ledger.open(path) as ledger:
        for number in range(1000):
            try:
                acknowledged = ledger.append([LedgerEntry(str(number), bytes(20_000))])
            except StorageFullError as error:
                say("full", acknowledged, len(positions(path)), "no space left" in str(error))
                break
        ballast.unlink()
        say("freed", ledger.append([LedgerEntry("last", b"")]), kept(ledger))
    say("reopened", len(positions(path)))


def read_only(folder: Path) -> None:
    """Turns a disk read-only under a ledger, and writable again."""
    mount(folder, "size=4m")
    path = folder / "ledger.sqlite"
    with Ledger.open(path) as ledger:
        ledger.append(batch(0))
    mount(folder, None, MOUNT_READ_ONLY | MOUNT_REMOUNT)
    say("read", len(positions(path)))
    try:
        Ledger.open(path)
    except StorageError as error:
        say("refused", "mounted for writing" in str(error))
    mount(folder, None, MOUNT_REMOUNT)
    with Ledger.open(path) as ledger:
        say("writable", ledger.append(batch(0)))


def main() -> None:
    """Runs one command."""
    command, path, *numbers = sys.argv[1:]
    if command == "append":
        append(Path(path), *map(int, numbers))
    elif command == "attempt":
        attempt(Path(path), *map(int, numbers))
    elif command == "full":
        full(Path(path))
    elif command == "read-only":
        read_only(Path(path))
    elif command == "stats":
        with LedgerReader.open(Path(path)) as reader:
            say(reader.last_position, kept(reader), len(list(reader.entries(reader.trimmed_position))))


if __name__ == "__main__":
    main()
