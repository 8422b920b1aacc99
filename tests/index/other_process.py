"""What other processes do in the tests: write, read, hold the lock, and die at a chosen moment.

Run as `python other_process.py COMMAND ROOT …` from the repository root. Version v of the collection
`demo` holds COUNTS[v % 3] documents whose text is `version v`, so that a mixture would show.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from tercet.index.candidates import Document
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.collection import Collection
from tercet.index.errors import CollectionNotFoundError
from tercet.index.verify import verify
from tercet.index.writer import SegmentLimits
from tercet.models.representations import Representations, SparseRows, TokenVectors

COUNTS = (5, 9, 7)
LASTING = ("collection.json", "CURRENT", "LOCK", "lineage.json", "manifests", "segments")
SETTINGS = CollectionSettings("demo", "tiny", "f", 4, 2, 20, fields={"version": "integer", "tags": "keyword"})


def texts(count: int, seed: int) -> Representations:
    """Random representations with two terms and three token vectors each."""
    numbers = np.random.default_rng(seed)
    dense = numbers.standard_normal((count, 4)).astype(np.float32)
    terms = np.sort(np.array([numbers.choice(20, 2, replace=False) for _ in range(count)], np.int32), axis=1)
    return Representations(
        np.full(count, 4, np.int64),
        np.zeros(count, np.bool_),
        dense / np.linalg.norm(dense, axis=1, keepdims=True),
        SparseRows(np.arange(count + 1) * 2, terms.ravel(), np.ones(2 * count, np.float32)),
        TokenVectors(numbers.uniform(-1, 1, (3 * count, 2)).astype(np.float32), np.arange(count + 1) * 3),
    )


def write(root: Path, version: int) -> None:
    """Builds and publishes one version in segments of four documents."""
    count = COUNTS[version % 3]
    documents = [
        Document(f"d{number}", f"version {version}", None, {"version": version, "tags": [f"t{number % 2}"]})
        for number in range(count)
    ]
    with Collection.open(root, "demo").writer(SegmentLimits(documents=4)) as writer:
        writer.add(documents, texts(count, version))
        writer.publish()


def read(root: Path) -> int:
    """Opens the current snapshot, checks that it is one whole version, and returns the version."""
    snapshot = Collection.open(root, "demo").snapshot()
    if snapshot.documents == 0:
        return 0
    hits = snapshot.search(texts(1, 0), top_k=50).hits
    versions = {hit.document.text for hit in hits}
    version = int(next(iter(versions)).removeprefix("version "))
    if len(versions) != 1 or not len(hits) == snapshot.documents == COUNTS[version % 3]:
        raise SystemExit(f"a mixture: {versions}, {len(hits)} hits of {snapshot.documents}")
    return version


def create(root: Path) -> None:
    """Creates the collection where a killed process has not."""
    try:
        Collection.open(root, "demo")
    except CollectionNotFoundError:
        Collection.create(root, "demo", SETTINGS)


def killed_at(event: int, action: Callable[[], None]) -> bool:
    """Runs an action in a forked process that dies just before its n-th operation on the file system.

    Returns whether it died; it may have finished before.
    """
    child = os.fork()
    if child == 0:
        die_at(event)
        action()
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    if status not in (0, signal.SIGKILL):
        raise SystemExit(f"operation {event}: status {status}")
    return status != 0


def die_at(event: int) -> None:
    """Kills this process just before its n-th operation on the file system."""
    left = event

    def hook(name: str, arguments: tuple[object, ...]) -> None:
        nonlocal left
        changing = name in ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "mmap.__new__")
        if changing or (name == "open" and not str(arguments[0]).endswith((".py", ".pyc", ".nbi", ".nbc"))):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def crash(root: Path, first: int, stride: int) -> None:
    """Kills a creating and publishing process at every `stride`-th operation, checking after each.

    Ends at the first process that finishes, and prints how many died. Every second time another writer
    succeeds in between; otherwise the next doomed one meets what the last has left.
    """
    current = 0
    for event in range(first, 100_000, stride):
        attempted = current + 1

        def doomed(version: int = attempted) -> None:
            create(root)
            write(root, version)

        died = killed_at(event, doomed)
        create(root)
        problems = verify(root, "demo")
        former, current = current, read(root)
        if problems or current not in ((former, attempted) if died else (attempted,)):
            raise SystemExit(f"operation {event}: {problems}, version {former} became {current}")
        if not died:
            say((event - first) // stride)
            return
        if (event - first) // stride % 2:
            current = attempted + 1
            write(root, current)
            require_clean(root, current)


def require_clean(root: Path, version: int) -> None:
    """Checks that a version is current and that nothing else is left."""
    folder = root / "demo"
    left = sorted(
        path.name for part in (folder, folder / "segments", folder / "manifests") for path in part.iterdir()
    )
    # Of a version that replaced another, and of one that was opened.
    left = [name for name in left if name not in ("ledger.sqlite", "VERIFIED")]
    segments = -(-COUNTS[version % 3] // 4)
    if read(root) != version or len(left) != segments + 1 + len(LASTING):
        raise SystemExit(f"version {version}: remains {left}")


def say(word: object) -> None:
    """Tells the test."""
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


def main() -> None:
    """Runs one command."""
    command, root = sys.argv[1], Path(sys.argv[2])
    if command == "crash":
        crash(root, int(sys.argv[3]), int(sys.argv[4]))
    elif command == "write":
        create(root)
        write(root, 1)  # of a first one that is killed `verify` says that CURRENT may be lost
        say("ready")
        for version in range(2, 100_000):
            write(root, version)
    elif command == "read":
        create(root)
        seen = set[int]()
        while len(seen) < int(sys.argv[3]):
            seen.add(read(root))
    elif command == "hold":
        with Collection.open(root, "demo").writer():
            say("ready")
            time.sleep(600)


if __name__ == "__main__":
    main()
