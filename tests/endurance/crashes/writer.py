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
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import NoReturn

from tercet.index.backups.making import make_backup
from tercet.index.backups.records import Backup
from tercet.index.backups.restoring import restore_as, restore_into
from tercet.index.backups.store import BackupStore
from tercet.index.collection import Collection, delete_collection, list_collections, staged_build
from tercet.index.live.adoption import AdoptionMode
from tercet.index.live.collection import LiveCollection
from tercet.index.live.records import LiveLimits
from tests.endurance.crashes.workload import (
    NAME,
    Contents,
    backup_contents,
    backups_of,
    contents_of,
    next_write,
    representations,
    thread_of,
    versions_of,
)

# How long a collection stays open before the process closes it and opens it again.
SHORTEST_SECONDS, LONGEST_SECONDS = 0.1, 0.6
BACKUPS = 2  # kept
RESTORED = 0.6  # share of backups that are restored in the collection's place
OTHER = "restored"
DECLARED, FIELDS = 0.3, 60
LIMITS = LiveLimits(flush_documents=200, merge_width=4)  # so that background threads do much in a short life


class Voice:
    """Tells the parent, in lines of JSON that are written whole."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = threading.Lock()

    def say(self, *words: object) -> None:
        """One line."""
        with self._lock:
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
    """Opens the collection, writes, flushes, merges and declares fields, and closes it, over and over.

    contents: what each thread's ids hold; numbers: of each thread's next write.
    """
    voice, generator = Voice(descriptor), random.Random(seed)
    threads = [
        _Thread(place, voice, dict(held), number, random.Random(seed + place + 1))
        for place, (held, number) in enumerate(zip(contents, numbers, strict=True))
    ]
    building = threading.Lock()  # a build or a restore: one at a time
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
                _upkeep(
                    voice, "build", partial(_build_again, collection, generator, building, voice), generator
                ),
                _upkeep(voice, "declaration", partial(_declare, generator, building), generator),
                Backups(root, voice, generator, building, threads).work,
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
        self.writing = threading.Lock()
        """Held during each write."""

    def restored(self, contents: Contents) -> None:
        """Its ids hold what a backup did."""
        self._contents = {id: versions for id, versions in contents.items() if thread_of(id) == self._place}

    def write(self, live: LiveCollection, until: float) -> None:
        while time.monotonic() < until:
            with self.writing:
                self._write_one(live)

    def _write_one(self, live: LiveCollection) -> None:
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
    generator = random.Random(generator.randrange(2**32))

    def keep_up(live: LiveCollection, until: float) -> None:
        while time.monotonic() < until:
            with voice.phase(phase):
                work(live)
            time.sleep(generator.uniform(0, 0.05))

    return keep_up


def _declare(generator: random.Random, building: threading.Lock, live: LiveCollection) -> None:
    """A field that no document has a value in, now and then, until there are many; not during a build."""
    if generator.random() < DECLARED and len(live.settings.fields) < FIELDS:
        with building:
            live.declare({f"later{len(live.settings.fields)}": "integer"})


def _build_again(
    collection: Collection,
    generator: random.Random,
    building: threading.Lock,
    voice: Voice,
    live: LiveCollection,
) -> None:
    with building:
        build_again(collection, generator, voice, live)


def build_again(collection: Collection, generator: random.Random, voice: Voice, live: LiveCollection) -> None:
    """A build of what the collection holds, adopted while others write; so it must change no document."""
    mode: AdoptionMode = generator.choice(("replace", "upsert"))
    with (
        voice.phase(mode),
        live.begin_build() as build,
        staged_build(collection, secrets.token_hex(4)) as stage,
    ):
        snapshot = live.snapshot()
        documents = snapshot.page(None, snapshot.documents + 1)
        if documents:
            versions = [versions_of(each) for each in documents]
            texts = [0 if each is None else each[0] for each in versions]
            with stage.writer() as writer:
                writer.add(documents, representations([each.id for each in documents], texts))
                writer.publish()
            live.adopt(build, stage.layout, mode)


class Backups:
    """Makes backups beside the writes and restores them: under another name, and in the collection's place.

    The latter undoes writes, so nobody writes meanwhile; it is told what the collection will hold.
    """

    def __init__(
        self,
        root: Path,
        voice: Voice,
        generator: random.Random,
        building: threading.Lock,
        threads: Sequence[_Thread],
    ) -> None:
        self._root = root
        self._store = BackupStore(backups_of(root))
        self._voice = voice
        self._generator = random.Random(generator.randrange(2**32))
        self._building = building
        self._threads = threads

    def work(self, live: LiveCollection, until: float) -> None:
        """Backups and restores, one after the other."""
        while time.monotonic() < until:
            self.make(live)
            if kept := self._store.list(NAME):
                if self._generator.random() < RESTORED:
                    self.restore(live, kept[0])
                else:
                    self.restore_beside(kept[0])
            time.sleep(self._generator.uniform(0, 0.1))

    def make(self, live: LiveCollection) -> None:
        """A backup of what was flushed; few are kept."""
        collection = Collection.open(self._root, NAME)
        with self._voice.phase("backup"):
            live.flush()
            if collection.current() is not None:
                self._voice.say("backed up", make_backup(collection, self._store).id)
            for old in self._store.list(NAME)[BACKUPS:]:
                self._voice.say("forgotten", old.id)
                self._store.delete(NAME, old.id)

    def restore(self, live: LiveCollection, backup: Backup) -> None:
        """In the place of all documents."""
        contents = backup_contents(self._store.layout(backup))
        with ExitStack() as held:
            held.enter_context(self._building)
            for thread in self._threads:
                held.enter_context(thread.writing)
            with self._voice.phase("restore"):
                self._voice.say("restoring", contents)
                restore_into(Collection.open(self._root, NAME), live, self._store, backup)
                self._voice.say("restored")
            for thread in self._threads:
                thread.restored(contents)

    def restore_beside(self, backup: Backup) -> None:
        """As a collection of another name, which is deleted again."""
        with self._voice.phase("restore under another name"):
            if OTHER in list_collections(self._root):
                delete_collection(self._root, OTHER)
            found = contents_of(restore_as(self._root, OTHER, self._store, backup).snapshot())
            wanted = backup_contents(self._store.layout(backup))
            assert found == wanted, "a restored collection has other documents than the backup"
            delete_collection(self._root, OTHER)


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
