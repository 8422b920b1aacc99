"""What other processes do to a live collection in the tests, where disks fail.

Run as `python live_process.py COMMAND ROOT …` from the repository root. Batch n puts the documents `n-0`,
`n-1` and `n-2`, and replaces `last`; what became of each call is said. Words go out by `writev`, so that
faults of `write` and `pwrite64` fall into files alone.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

from tercet.index.candidates import Document
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.collection import Collection
from tercet.index.errors import StorageError, UnforcedPublicationError
from tercet.index.live.collection import LiveCollection
from tercet.index.live.records import LiveLimits
from tercet.models.representations import Representations, SparseRows, TokenVectors

NAME = "demo"
SETTINGS = CollectionSettings(NAME, "tiny", "f", 4, 2, 20, lexical="idf")
LIMITS = LiveLimits(flush_seconds=3600, merge_width=2)  # only what is asked for meets a disk that fails
SIZE = 4  # documents of a batch
MOUNT_READ_ONLY, MOUNT_REMOUNT = 1, 32


def put(live: LiveCollection, number: int, text: str = "") -> int:
    """One batch; returns its position."""
    ids = [*(f"{number}-{place}" for place in range(SIZE - 1)), "last"]
    return live.put([Document(id, f"batch {number}{text}") for id in ids], representations(number)).position


def representations(number: int) -> Representations:
    """Those of a batch."""
    numbers = np.random.default_rng(number)
    dense = numbers.standard_normal((SIZE, 4)).astype(np.float32)
    return Representations(
        np.full(SIZE, 3, np.int64),
        np.zeros(SIZE, np.bool_),
        dense / np.linalg.norm(dense, axis=1, keepdims=True),
        SparseRows(np.arange(SIZE + 1), np.arange(SIZE, dtype=np.int32), np.ones(SIZE, np.float32)),
        TokenVectors(numbers.uniform(-1, 1, (2 * SIZE, 2)).astype(np.float32), np.arange(SIZE + 1) * 2),
    )


def batches(live: LiveCollection) -> list[int]:
    """The batches that are there, each as a whole; the last one put has the document `last`."""
    found = {each.id: each.text for each in live.snapshot().page(None, 100_000)}
    last = found.pop("last", None)
    numbers = sorted({int(id.split("-")[0]) for id in found})
    whole = {f"{number}-{place}" for number in numbers for place in range(SIZE - 1)}
    if found.keys() != whole or (last is None) != (not numbers):
        raise SystemExit(f"a batch is there in part: {found}, {last}")
    if numbers and (last is None or int(last.split()[1]) != numbers[-1]):
        raise SystemExit(f"{last} is the last of {numbers}")
    return numbers


def say(*words: object) -> None:
    """Tells the test."""
    os.writev(1, [(" ".join(map(str, words)) + "\n").encode()])


def attempt(root: Path, rounds: int) -> None:
    """Batches, with a flush and a merge after every second one; says of each call what became of it."""
    with LiveCollection(Collection.open(root, NAME), LIMITS) as live:
        for number in range(rounds):
            tell(f"put {number}", lambda number=number: put(live, number))  # type: ignore[misc]
            if number % 2:
                tell("flush", live.flush)
                tell("merge", live.merge)
            say("searched", len(live.snapshot().search(representations(0).take(np.array([0]))).hits) > 0)
        say("there", *batches(live))


def tell(what: str, call: Callable[[], object]) -> None:
    """Says how a call ended; errors other than those of a disk end the process."""
    try:
        call()
        say(what, "done")
    except (StorageError, UnforcedPublicationError) as error:
        say(what, type(error).__name__)
    except OSError as error:
        say(what, errno.errorcode[error.errno or 0])


def write(root: Path, count: int) -> None:
    """Batches, saying after each the size of the ledger's log; ends as by a kill."""
    live = LiveCollection(Collection.open(root, NAME), LIMITS).__enter__()
    for number in range(count):
        put(live, number)
        say(number, (root / NAME / "ledger.sqlite-wal").stat().st_size)
    os._exit(0)


def mount(folder: Path, options: str | None, flags: int = 0) -> None:
    """Mounts a small file system of memory, or changes one, where only this process sees it."""
    libc = ctypes.CDLL(None, use_errno=True)
    kind = b"tmpfs"
    if libc.mount(kind, os.fsencode(folder), kind, flags, (options or "").encode()):
        raise OSError(ctypes.get_errno(), "mount")


def full(folder: Path) -> None:
    """Fills a disk of 3 MB by puts, tries to flush, frees some, and goes on."""
    mount(folder, "size=3m")
    root, ballast = folder / "collections", folder / "ballast"
    ballast.write_bytes(bytes(1_900_000))
    collection = Collection.create(root, NAME, SETTINGS)
    acknowledged, text = 0, " " + "x" * 5000
    with LiveCollection(collection, LIMITS) as live:
        for number in range(1000):
            try:
                put(live, number, text)
                acknowledged += 1
                if number == 5:
                    live.flush()
            except StorageError as error:
                say("full", type(error).__name__, "free some" in str(error))
                break
        tell("flush", live.flush)
        say("searched", len(live.snapshot().search(representations(0).take(np.array([0]))).hits))
        say("there", batches(live) == list(range(acknowledged)))
        ballast.unlink()
        live.flush()
        live.merge()
        put(live, acknowledged, text)
        say("freed", batches(live) == list(range(acknowledged + 1)))
    with LiveCollection(collection, LIMITS) as live:
        say("reopened", batches(live) == list(range(acknowledged + 1)), acknowledged > 3)


def read_only(folder: Path) -> None:
    """Opens a collection on a disk that is read-only, and once more when it can be written again."""
    mount(folder, "size=4m")
    collection = Collection.create(folder / "collections", NAME, SETTINGS)
    with LiveCollection(collection, LIMITS) as live:
        put(live, 0)
        live.flush()
        put(live, 1)
    mount(folder, None, MOUNT_READ_ONLY | MOUNT_REMOUNT)
    say("published", collection.snapshot().documents)
    tell("open", LiveCollection(collection, LIMITS).__enter__)
    mount(folder, None, MOUNT_REMOUNT)
    with LiveCollection(collection, LIMITS) as live:
        put(live, 2)
        say("there", *batches(live))


def main() -> None:
    """Runs one command."""
    command, root, *numbers = sys.argv[1:]
    if command == "attempt":
        attempt(Path(root), *map(int, numbers))
    elif command == "write":
        write(Path(root), *map(int, numbers))
    elif command == "full":
        full(Path(root))
    elif command == "read-only":
        read_only(Path(root))


if __name__ == "__main__":
    main()
