"""The process that is killed: it writes from several threads, and tells each write before and after."""

from __future__ import annotations

import contextlib
import json
import os
import random
import secrets
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NoReturn

from crashes.workload import NAME, Contents, next_write, representations, versions_of

from index.collection import Collection, staged_build
from index.live.collection import LiveCollection
from index.live.records import LiveLimits

# How long a collection stays open before the process closes it and opens it again.
SHORTEST_SECONDS, LONGEST_SECONDS = 0.1, 0.6
LIMITS = LiveLimits(flush_documents=200, merge_width=4)  # so that background threads do much in a short life


class Voice:
    """Tells the parent, in lines of JSON that are written whole."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def say(self, *words: object) -> None:
        """One line."""
        os.write(self._descriptor, json.dumps(words).encode() + b"\n")

    @contextlib.contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Says when something begins and when it has ended."""
        self.say("phase", name, 1)
        yield
        self.say("phase", name, -1)


def write_until_killed(
    root: Path, contents: Sequence[Contents], numbers: Sequence[int], seed: int, descriptor: int
) -> NoReturn:
    """Opens the collection, writes, flushes and merges it and closes it, over and over.

    contents: what each thread's ids hold; numbers: of each thread's next write.
    """
    voice, generator = Voice(descriptor), random.Random(seed)  # noqa: S311 - of a test
    threads = [
        _Thread(place, voice, dict(held), number, random.Random(seed + place + 1))  # noqa: S311
        for place, (held, number) in enumerate(zip(contents, numbers, strict=True))
    ]
    with _told(voice):
        while True:
            collection = Collection.open(root, NAME)
            live = LiveCollection(collection, LIMITS)
            with voice.phase("opening"):
                live.__enter__()
            until = time.monotonic() + generator.uniform(SHORTEST_SECONDS, LONGEST_SECONDS)
            works = [
                *(thread.write for thread in threads),
                _upkeep(voice, "flush", LiveCollection.flush, generator),
                _upkeep(voice, "merge", LiveCollection.merge, generator),
                _upkeep(voice, "build", partial(build_again, collection, generator), generator),
            ]
            _all_at_once(works, live, until)
            with voice.phase("closing"):
                live.__exit__(None, None, None)


class _Thread:
    """Writes one operation after the other, and knows what its ids hold."""

    def __init__(
        self, place: int, voice: Voice, contents: Contents, number: int, generator: random.Random
    ) -> None:
        self._place = place
        self._voice = voice
        self._contents = contents
        self._number = number
        self._generator = generator

    def write(self, live: LiveCollection, until: float) -> None:
        while time.monotonic() < until:
            write = next_write(self._place, self._number, self._contents, self._generator)
            after = write.after(self._contents)
            self._voice.say("begun", write.record)
            counted = write.carry_out(live)
            self._voice.say("acknowledged", self._place)
            there = len(write.ids) if write.kind == "put" else sum(id in self._contents for id in write.ids)
            assert counted == there, f"{write} counted {counted}"
            self._contents, self._number = after, self._number + 1


def _upkeep(
    voice: Voice, phase: str, work: Callable[[LiveCollection], object], generator: random.Random
) -> Callable[[LiveCollection, float], None]:
    """Work that is done over and over beside the writes, by a thread that says when."""
    generator = random.Random(generator.randrange(2**32))  # noqa: S311 - of a thread of its own

    def keep_up(live: LiveCollection, until: float) -> None:
        while time.monotonic() < until:
            with voice.phase(phase):
                work(live)
            time.sleep(generator.uniform(0, 0.05))

    return keep_up


def build_again(collection: Collection, generator: random.Random, live: LiveCollection) -> None:
    """A build of what the collection holds, adopted while others write; so it must change nothing."""
    with live.begin_build() as build, staged_build(collection, secrets.token_hex(4)) as stage:
        snapshot = live.snapshot()
        documents = snapshot.page(None, snapshot.documents + 1)
        if documents:
            versions = [versions_of(each) for each in documents]
            texts = [0 if each is None else each[0] for each in versions]
            with stage.writer() as writer:
                writer.add(documents, representations([each.id for each in documents], texts))
                writer.publish()
            live.adopt(build, stage.layout, generator.choice(("replace", "upsert")))


def _all_at_once(
    works: Sequence[Callable[[LiveCollection, float], None]], live: LiveCollection, until: float
) -> None:
    """Each in a thread of its own; the first failure of one is raised."""
    failures: list[BaseException] = []

    def guarded(work: Callable[[LiveCollection, float], None]) -> None:
        try:
            work(live, until)
        except BaseException as error:  # noqa: BLE001 - raised by the one who waits
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


@contextlib.contextmanager
def _told(voice: Voice) -> Iterator[None]:
    """The parent is told of a failure; this process then ends."""
    try:
        yield
    except BaseException:  # noqa: BLE001 - whatever it is
        voice.say("failed", traceback.format_exc()[-3000:])
    os._exit(1)
