"""What a forked process does with what its parent had opened and used, said line by line.

Run as `python fork_process.py FOLDER` from the repository root. An alarm ends a child that waits for ever.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import faiss

from tercet.index.candidates import Document
from tercet.index.collection import Collection
from tercet.index.errors import CollectionBusyError
from tercet.index.live.collection import LiveCollection
from tercet.index.search.threads import segment_threads
from tests.index.conftest import random_representations, settings_for

COUNT = 3000  # more than one thread of FAISS builds a graph of


def build(root: Path, name: str) -> Collection:
    """A collection with a graph."""
    encoded = random_representations(COUNT, 1)
    collection = Collection.create(root, name, settings_for(encoded, name, dense_kind="hnsw"))
    with collection.writer() as writer:
        writer.add([Document(f"d{number}", "text") for number in range(COUNT)], encoded)
        writer.publish()
    return collection


def parallel() -> set[int]:
    """The threads that take part in work of four equal parts, each of which waits for another one."""
    two = threading.Barrier(2, timeout=5)

    def work() -> int:
        try:
            two.wait()
        except threading.BrokenBarrierError:
            return 0
        return threading.get_ident()

    return set(segment_threads().run([work] * 2, [10_000] * 2))


def first_id(collection: Collection) -> str:
    """The best hit of a query."""
    return collection.snapshot().search(random_representations(1, 9)).hits[0].document.id


def main() -> None:
    """The parent builds, searches and writes; so does the child."""
    root = Path(sys.argv[1])
    faiss.omp_set_num_threads(4)
    built = build(root, "first")
    expected = first_id(built)
    threads = len(parallel())
    with LiveCollection(Collection.open(root, "first")) as live:
        live.put([Document("new", "text")], random_representations(1, 2))
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            say("searched", first_id(built) == expected)
            say("threads", len(parallel()) == threads)
            say("built", first_id(build(root, "second")) == expected)
            refused("put", lambda: live.put([Document("x", "y")], random_representations(1, 3)))
            refused("snapshot", live.snapshot)
            live.__exit__(None, None, None)
            os._exit(0)
        say("child", os.waitpid(child, 0)[1])
        live.put([Document("last", "text")], random_representations(1, 4))
        say("there", live.snapshot().documents - COUNT)
    with LiveCollection(Collection.open(root, "first")) as again:
        say("again", again.snapshot().documents - COUNT)


def refused(name: str, call: Callable[[], object]) -> None:
    """Says how a call was refused."""
    try:
        call()
    except CollectionBusyError as error:
        say(name, "of which this one" in str(error))


def say(*words: object) -> None:
    """Tells the test."""
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


if __name__ == "__main__":
    main()
