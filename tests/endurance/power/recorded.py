"""The process whose writes to the disk are recorded: a collection from its creation on.

Run under strace as `python -m tests.endurance.power.recorded BASE KEPT MARKS`. It says in the file MARKS what
it begins to write and what was acknowledged, as `crashes.writer` does through its pipe. KEPT gets a link to
each file that Python forces: arrays are written through mapped memory, too, which no trace shows, and their
files may be removed later on.
"""

from __future__ import annotations

import itertools
import os
import random
import stat
import sys
import threading
from pathlib import Path

from tercet.index.collection import Collection
from tercet.index.live.collection import LiveCollection
from tercet.index.live.records import LiveLimits
from tests.endurance.crashes.workload import NAME, SETTINGS, Contents, next_write
from tests.endurance.crashes.writer import Backups, Voice, build_again

LIMITS = LiveLimits(merge_width=2)
WRITES = 9  # between two flushes
FLUSHES = 2


def main() -> None:
    """Creates, writes, flushes, merges, closes and opens again."""
    base, kept, marks = map(Path, sys.argv[1:])
    keep_forced_files(kept)
    voice = Voice(os.open(marks, os.O_WRONLY | os.O_CREAT | os.O_APPEND))
    contents: list[Contents] = [{}, {}]
    numbers = [itertools.count(1), itertools.count(1)]
    generator = random.Random(5)
    root = base / "collections"
    Collection.create(root, NAME, SETTINGS)
    backups = Backups(root, voice, generator, threading.Lock(), [])
    for _ in range(2):
        collection = Collection.open(root, NAME)
        with LiveCollection(collection, LIMITS) as live:
            for _ in range(FLUSHES):
                for _ in range(WRITES):
                    thread = generator.randrange(2)
                    write = next_write(thread, next(numbers[thread]), contents[thread], generator)
                    voice.say("begun", write.record)
                    write.carry_out(live)
                    contents[thread] = write.after(contents[thread])
                    voice.say("acknowledged", thread)
                live.flush()
                live.merge()
            build_again(collection, generator, voice, live)
            backups.make(live)


def keep_forced_files(kept: Path) -> None:
    """From now on each file that is forced by Python gets a second name."""
    force, names, folder = os.fsync, itertools.count(), os.open(kept, os.O_RDONLY)

    def force_and_link(descriptor: int) -> None:
        force(descriptor)
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.link(f"/proc/self/fd/{descriptor}", str(kept / str(next(names))), dst_dir_fd=folder)

    os.fsync = force_and_link


if __name__ == "__main__":
    main()
