"""Is anything lost when the process is killed? SIGKILL at random moments, over and over, on one collection.

A process puts, patches, updates and deletes documents from several threads, flushes, merges, declares
fields, adopts builds, makes and restores backups, closes and opens again, and tells each write before it
begins and after it is acknowledged.
It is killed at a random moment. Then the collection is verified, opened and read: each acknowledged write
must be there, and each other one whole or not at all. The next process goes on with the same collection.

Run: python -m tests.endurance.live.crash [--kills 1000] [--seed N] [--folder FOLDER]
"""

import argparse
import json
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import cast

import psutil

from tercet.index.collection import Collection
from tests.endurance.crashes.inspection import inspect
from tests.endurance.crashes.journal import Journal, contents_in
from tests.endurance.crashes.processes import answer_of, killed_after, warm_up
from tests.endurance.crashes.workload import NAME, SETTINGS, THREADS
from tests.endurance.crashes.writer import write_until_killed

LONGEST_SECONDS = 0.8  # of a life
SHOWN = 10


class Run:
    """Kills so far, and what they showed."""

    def __init__(self, root: Path, seed: int) -> None:
        self._root = root
        self._generator = random.Random(seed)
        self._journal = Journal()
        self.kills = 0
        self.under_way: Counter[str] = Counter()
        self.remains: Counter[str] = Counter()
        self.begun = 0
        self.survived = 0
        self.lost: list[str] = []
        self.half_applied: list[str] = []
        self.problems: list[str] = []

    @property
    def acknowledged(self) -> Counter[str]:
        """Writes by kind."""
        return self._journal.acknowledged

    @property
    def failed(self) -> bool:
        """Whether anything is wrong."""
        return bool(self.lost or self.half_applied or self.problems)

    def kill(self) -> None:
        """One life of a writer, and a look at what it left."""
        journal, root = self._journal, self._root
        seed = self._generator.randrange(2**32)
        contents, numbers = journal.contents, journal.numbers
        alive = killed_after(
            self._generator.uniform(0, LONGEST_SECONDS),
            lambda pipe: write_until_killed(root, contents, numbers, seed, pipe),
            journal.hear,
        )
        if not alive or journal.failure:
            self.problems.append(f"the writer failed by itself: {journal.failure}")
        self.kills += 1
        self.under_way.update(phase for phase, count in journal.phases.items() if count)
        self.under_way["writes"] += journal.writing > 0
        self.begun += journal.writing
        asked = journal.asked_after()
        try:
            found = cast(dict[str, object], answer_of(lambda: inspect(root, asked, seed).record))
        except RuntimeError as error:
            self.problems.append(f"the collection cannot be opened and read: {error}")
            return
        self.remains.update(cast(list[str], found["remains"]))
        self.problems += cast(list[str], found["problems"])
        documents = contents_in(found["documents"])
        keys, backups = cast(list[str], found["keys"]), cast(list[str], found["backups"])
        compared = journal.compare(documents, keys, backups)
        self.lost += compared.acknowledged_lost
        self.half_applied += compared.half_applied
        self.survived += compared.survived
        journal.go_on_with(documents)
        journal.next_life()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument(
        "--seed",
        type=int,
        default=time.time_ns() % 2**32,
        help="of delays and writes; threads make each run its own",
    )
    parser.add_argument("--folder", type=Path, help="an empty one on the disk to be used")
    asked = parser.parse_args()
    print(f"seed {asked.seed}", flush=True)
    warm_up()
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tercet-crash-", dir=asked.folder) as name:
        root, file_system = Path(name) / "collections", file_system_of(Path(name))
        Collection.create(root, NAME, SETTINGS)
        run = Run(root, asked.seed)
        while run.kills < asked.kills and not run.failed:
            run.kill()
            if run.kills % 100 == 0:
                print(f"{run.kills} kills, {run.acknowledged.total()} writes acknowledged", flush=True)
    record = {
        "file_system": file_system,
        "seed": asked.seed,
        "threads": THREADS,
        "kills": run.kills,
        "seconds": round(time.monotonic() - started),
        "acknowledged_writes": dict(run.acknowledged),
        "acknowledged_writes_lost": len(run.lost),
        "half_applied_writes": len(run.half_applied),
        "problems_of_verify_and_reading": len(run.problems),
        "begun_writes": {"at_kills": run.begun, "found_later": run.survived},
        "kills_during": dict(run.under_way.most_common()),
        "kills_that_left": dict(run.remains.most_common()),
    }
    print(json.dumps(record, indent=2))
    for what in (run.lost + run.half_applied + run.problems)[:SHOWN]:
        print(what)
    if run.failed:
        sys.exit(f"something was lost or damaged; --seed {asked.seed} gives the same delays and writes")


def file_system_of(folder: Path) -> str:
    """The kind of the file system that a folder lies on."""
    mounted = [part for part in psutil.disk_partitions(all=True) if folder.is_relative_to(part.mountpoint)]
    return max(mounted, key=lambda part: len(part.mountpoint)).fstype


if __name__ == "__main__":
    main()
