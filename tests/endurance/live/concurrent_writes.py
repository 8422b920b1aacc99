"""Do 8 writers and 8 readers of one collection ever see what they should not, while it flushes and merges?

All write the same documents. Each write gets a position, which orders them, so the state of the collection
after each is known. Each read must have seen one of them as a whole: one that was current between its
beginning and its end, and not an earlier one than the same reader has seen before. Memory must stay flat.

Run: python -m tests.endurance.live.concurrent_writes [--minutes 10] [--http] [--writers 8] [--readers 8]
"""

import argparse
import contextlib
import json
import random
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from benchmarks.serving.server import build, serving
from tercet.index.collection import Collection
from tercet.index.live.collection import LiveCollection
from tercet.index.live.records import LiveLimits, LiveObserver
from tercet.index.verify import verify
from tests.endurance.concurrency.history import History, Read, Write
from tests.endurance.concurrency.targets import (
    COLLECTION,
    SETTINGS,
    InProcess,
    OverHttp,
    OverloadedError,
    Target,
)

IDS = [f"d{number:03d}" for number in range(400)]
LIMITS = LiveLimits(flush_documents=2000, flush_seconds=2, merge_width=4)
LARGEST_PUT, LARGEST_PAGE = 8, 60
CHECK_SECONDS, SAMPLE_SECONDS = 0.5, 5.0
GROWTH_BAR = 32 * 2**20  # bytes, from the second quarter of the samples to the last


class Counts(LiveObserver):
    """How often was flushed and merged."""

    def __init__(self) -> None:
        self.of: Counter[str] = Counter()

    def flushed(self, documents: int, seconds: float) -> None:
        self.of["flushes"] += 1

    def merged(self, documents: int, seconds: float) -> None:
        self.of["merges"] += 1

    def failed(self, error: Exception) -> None:
        self.of[f"failed: {error}"] += 1


@dataclass(frozen=True, slots=True)
class Place:
    """Where the collection is: callers, memory that it takes, and its root.

    upkeep: how often was flushed and merged, where that is known; position: at first, when it is empty.
    """

    target: Callable[[], Target]
    memory: Callable[[], int]
    root: Path
    upkeep: Counter[str]
    position: int = 0


class Load:
    """Threads that write and read until they are to stop."""

    def __init__(self, target: Callable[[], Target], history: History, seed: int) -> None:
        self._target = target
        self._history = history
        self._seed = seed
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self.counts: Counter[str] = Counter()
        self.errors: list[str] = []

    def start(self, writers: int, readers: int) -> None:
        """Begins."""
        works = [self._write] * writers + [self._read] * readers
        self._threads = [
            threading.Thread(target=self._run, args=(work, place)) for place, work in enumerate(works)
        ]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Ends, once all have ended what they are at."""
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _run(self, work: Callable[[Target, random.Random, int], None], place: int) -> None:
        generator = random.Random(self._seed + place)
        try:
            target = self._target()
            while not self._stop.is_set():
                work(target, generator, place)
        except Exception:  # noqa: BLE001 - whatever it is, it is an error but for back-pressure
            self.errors.append(traceback.format_exc()[-2000:])

    def _count(self, what: str) -> None:
        with self._lock:
            self.counts[what] += 1

    def _write(self, target: Target, generator: random.Random, place: int) -> None:
        choice = generator.random()
        tag = f"{place}-{time.perf_counter_ns()}"
        if choice < 0.7:
            write = Write("put", tuple(generator.sample(IDS, generator.randint(1, LARGEST_PUT))), tag, 0)
        elif choice < 0.85:
            write = Write("delete", tuple(generator.sample(IDS, generator.randint(1, 3))), tag, 0)
        else:
            write = Write("patch", (generator.choice(IDS),), tag, 0)
        write.begun = time.perf_counter()
        self._history.begin(write)
        try:
            if write.kind == "put":
                write.position, write.counted = target.put(write.ids, tag), len(write.ids)
            elif write.kind == "delete":
                write.position, write.counted = target.delete(write.ids)
            else:
                write.position, write.counted = target.patch(write.ids[0], tag), 1
            self._count(write.kind)
        except OverloadedError:
            self._count("refused by back-pressure")
            self._stop.wait(0.1)
        finally:
            write.ended = time.perf_counter()
            self._history.end(write)

    def _read(self, target: Target, generator: random.Random, place: int) -> None:
        choice, begun = generator.random(), time.perf_counter()
        if choice < 0.5:
            name = generator.choice(IDS)
            read = Read(place, begun, 0, {name: target.get(name)})
            self._count("get")
        elif choice < 0.75:
            after, limit = generator.choice([None, *IDS]), generator.randint(1, LARGEST_PAGE)
            found = dict(target.page(after, limit))
            last = max(found) if len(found) == limit else IDS[-1]
            asked = [name for name in IDS if (after is None or name > after) and name <= last]
            read = Read(place, begun, 0, {name: found.pop(name, None) for name in asked})
            assert not found, f"a page after {after} has {sorted(found)}"
            self._count("page")
        else:
            read = Read(place, begun, 0, dict(target.search(generator.choice(IDS))))
            self._count("search")
        self._history.saw(Read(place, begun, time.perf_counter(), read.values))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--http", action="store_true", help="a server and its embedded encoder")
    parser.add_argument("--writers", type=int, default=8)
    parser.add_argument("--readers", type=int, default=8)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 2**32)
    asked = parser.parse_args()
    print(f"seed {asked.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="tercet-concurrent-") as name:
        with (over_http if asked.http else in_process)(Path(name)) as place:
            history = History(applied=place.position)
            load = Load(place.target, history, asked.seed)
            memory = run(load, history, place, asked)
            history.check()
            left = dict(place.target().page(None, len(IDS)))
            if left != history.state:
                history.violations.append("in the end other documents are there than the writes left")
        problems = verify(place.root, COLLECTION)
    quarter = max(1, len(memory) // 4)
    growth = round(mean(memory[-quarter:]) - mean(memory[quarter : 2 * quarter] or memory))
    record = {
        "seed": asked.seed,
        "minutes": asked.minutes,
        "writers": asked.writers,
        "readers": asked.readers,
        "calls": dict(load.counts.most_common()),
        "upkeep": dict(place.upkeep),
        "reads_checked": history.checked,
        "most_states_a_read_might_have_seen": history.widest,
        "reads_not_explained": len(history.violations),
        "errors": len(load.errors),
        "problems_of_verify": len(problems),
        "memory_mib": [round(each / 2**20) for each in memory],
        "memory_growth_mib": round(growth / 2**20, 1),
    }
    print(json.dumps(record, indent=2))
    for what in [*history.violations, *load.errors, *problems]:
        print(what)
    if history.violations or load.errors or problems:
        sys.exit("a read was not explained, or a call failed")
    if growth > GROWTH_BAR and asked.minutes >= 1:
        sys.exit(f"memory grew by {growth / 2**20:.0f} MiB")


def run(load: Load, history: History, place: Place, asked: argparse.Namespace) -> list[int]:
    """The load for the time asked for; returns samples of memory in bytes."""
    end, memory = time.monotonic() + 60 * asked.minutes, list[int]()
    load.start(asked.writers, asked.readers)
    next_sample = time.monotonic() + SAMPLE_SECONDS
    while time.monotonic() < end and not load.errors and not history.violations:
        time.sleep(CHECK_SECONDS)
        history.check()
        if time.monotonic() >= next_sample:
            memory.append(place.memory())
            next_sample += SAMPLE_SECONDS
            if len(memory) % 12 == 0:
                print(f"{memory[-1] / 2**20:.0f} MiB, {history.checked} reads checked", flush=True)
    load.stop()
    return [*memory, place.memory()]


@contextlib.contextmanager
def in_process(folder: Path) -> Iterator[Place]:
    """A collection of this process, which flushes and merges often; memory includes that of the load."""
    root, counts, process = folder / "collections", Counts(), psutil.Process()
    collection = Collection.create(root, COLLECTION, SETTINGS)

    def memory() -> int:
        found = process.memory_info()
        return int(found.rss - found.shared)

    with LiveCollection(collection, LIMITS, counts) as live:
        yield Place(lambda: InProcess(live), memory, root, counts.of)


@contextlib.contextmanager
def over_http(folder: Path) -> Iterator[Place]:
    """A collection of a server; memory is the server's alone."""
    build(folder, COLLECTION, [{"id": IDS[0], "text": "first"}])
    with serving(folder) as server:
        position, _ = OverHttp(server.url).delete([IDS[0]])
        root = folder / "collections"
        yield Place(lambda: OverHttp(server.url), lambda: server.memory_bytes, root, Counter(), position)


def mean(samples: list[int]) -> float:
    """The arithmetic one."""
    return sum(samples) / len(samples)


if __name__ == "__main__":
    main()
