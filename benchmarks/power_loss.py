"""What does a collection hold after the power goes, at any moment and whatever of it the disk still had?

A kill cannot show that, since the operating system keeps what was written and not forced. So the calls of a
run that change files are recorded (by strace), and carried out again on a model of a disk, which after each
of them loses power in several ways (`power/disk.py`). Each state that is found then is written to a folder,
verified, opened and read: each write that was acknowledged must be there, and each other one whole or not at
all.

Run: python benchmarks/power_loss.py [--random 3] [--seed N] [--stride 1] [--no-record]
"""

import argparse
import datetime
import json
import os
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from crashes.inspection import Found, inspect
from crashes.journal import Journal
from crashes.workload import NAME, SETTINGS, Write
from power.disk import MODES, Loss, Mode, Tree
from power.replay import Replay
from power.states import assert_same, digest_of, read_tree, write_tree
from power.trace import Call, calls, record
from serving.server import machine

from tercet.index.collection import Collection
from tercet.index.errors import CollectionNotFoundError, SearchIndexError

HERE = Path(__file__).resolve().parent
RESULT = HERE / "results" / "power_loss.json"
MEMORY = Path("/dev/shm")  # noqa: S108 - states are written to memory where there is some
SHOWN = 10


class States:
    """States so far, and what they showed. asked: all writes of the run."""

    def __init__(self, folder: Path, asked: list[Write]) -> None:
        self._folder = folder
        self._asked = asked
        self._known: dict[bytes, Found | str] = {}
        self.losses: Counter[str] = Counter()
        self.remains: Counter[str] = Counter()
        self.unreadable: list[str] = []
        self.lost: list[str] = []
        self.half_applied: list[str] = []

    @property
    def distinct(self) -> int:
        """States that were opened."""
        return len(self._known)

    def see(self, tree: Tree, mode: str, journal: Journal, at: str) -> None:
        """What a loss of power left at a place of the trace, after what the journal has heard."""
        self.losses[mode] += 1
        mark = digest_of(tree)
        if mark not in self._known:
            self._known[mark] = found = self._opened(tree)
            problems = [found] if isinstance(found, str) else found.problems
            self.unreadable += [f"{at}, {mode}: {problem}" for problem in problems]
            self.remains.update(() if isinstance(found, str) else found.remains)
        found = self._known[mark]
        if not isinstance(found, str):
            compared = journal.compare(found.documents, found.keys, found.backups)
            self.lost += [f"{at}, {mode}: {what}" for what in compared.acknowledged_lost]
            self.half_applied += [f"{at}, {mode}: {what}" for what in compared.half_applied]

    def _opened(self, tree: Tree) -> Found | str:
        """What a state holds once it is opened, made anew where nothing of the collection is there."""
        with tempfile.TemporaryDirectory(prefix="state-", dir=self._folder) as name:
            write_tree(tree, Path(name))
            root = Path(name) / "collections"
            try:
                try:
                    Collection.open(root, NAME)
                except CollectionNotFoundError:
                    Collection.create(root, NAME, SETTINGS)
                return inspect(root, self._asked, seed=0)
            except (SearchIndexError, OSError) as error:
                return f"{type(error).__name__}: {error}"


def recorded(folder: Path) -> tuple[list[Call], Replay, Tree]:
    """The calls of a run, the disk before it, and what it left."""
    base, kept, marks, trace = (folder / name for name in ("base", "kept", "marks", "trace"))
    base.mkdir()
    kept.mkdir()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE.parent / "src"), str(HERE)])}
    script = [sys.executable, str(HERE / "power" / "recorded.py")]
    record([*script, str(base), str(kept), str(marks)], trace, environment)
    found = list(calls(trace))
    first = Replay(str(base), str(marks))
    for call in found:
        first.carry_out(call)
    contents = {number: Path(path).read_bytes() for number, path in first.mapped.items()}
    return found, Replay(str(base), str(marks), contents), read_tree(base)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--random", type=int, default=3, help="random losses after each change")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 2**32)
    parser.add_argument("--stride", type=int, default=1, help="look after each so many changes alone")
    parser.add_argument("--no-record", action="store_true", help="leave benchmarks/results alone")
    asked = parser.parse_args()
    print(f"seed {asked.seed}", flush=True)
    before, started = machine(), time.monotonic()
    generator = random.Random(asked.seed)
    modes: list[Mode] = [*MODES, *["random" for _ in range(asked.random)]]  # type: ignore[list-item]
    with tempfile.TemporaryDirectory(prefix="tercet-power-", dir=MEMORY if MEMORY.is_dir() else None) as name:
        found, replay, left = recorded(Path(name))
        heard, journal, changes = 0, Journal(), 0
        states = States(Path(name), writes_of(found, replay))
        for call in found:
            if not replay.carry_out(call):
                continue
            for line in replay.said[heard:]:
                journal.hear(json.loads(line))
            heard = len(replay.said)
            changes += 1
            if changes % asked.stride == 0:
                for mode in modes:
                    tree = Loss(mode, generator).tree(replay.root)
                    states.see(tree, mode, journal, f"change {changes} ({call.name}, line {call.ended})")
            if changes % 500 == 0:
                print(f"{changes} changes, {states.distinct} states", flush=True)
        assert_same(Loss("there", generator).tree(replay.root), left)
    result = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": before,
        "seed": asked.seed,
        "seconds": round(time.monotonic() - started),
        "acknowledged_writes": dict(journal.acknowledged),
        "calls_that_change_the_disk": changes,
        "forces": sum(call.name in ("fsync", "fdatasync") for call in found),
        "losses_of_power": dict(states.losses),
        "distinct_states_opened": states.distinct,
        "states_that_held": dict(states.remains.most_common()),
        "acknowledged_writes_lost": len(states.lost),
        "half_applied_writes": len(states.half_applied),
        "unreadable_states": len(states.unreadable),
    }
    print(json.dumps(result, indent=2))
    problems = states.unreadable + states.lost + states.half_applied
    for what in problems[:SHOWN]:
        print(what)
    if not asked.no_record:
        RESULT.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    if problems:
        sys.exit(f"{len(problems)} problems; --seed {asked.seed} gives the same losses")


def writes_of(found: list[Call], replay: Replay) -> list[Write]:
    """All that the recorded run began to write."""
    listener = Replay(replay.base, replay.marks, replay.kept)
    for call in found:
        listener.carry_out(call)
    lines = [json.loads(line) for line in listener.said]
    return [Write.of(line[1]) for line in lines if line[0] == "begun"]


if __name__ == "__main__":
    main()
