"""Pushing and pulling beside `cp` and SHA-256 of the same files, in one run."""

from __future__ import annotations

import hashlib
import os
import resource
import shutil
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import cast

from tercet.cluster.snapshots.pulling import files_here
from tercet.index.collection import Collection
from tests.endurance.crashes.processes import answer_of
from tests.endurance.crashes.workload import NAME
from tests.endurance.snapshots import world

ROUNDS = 5


def measure(folder: Path, total_bytes: int) -> dict[str, object]:
    """Medians of `ROUNDS` rounds, in each of which every way is taken once."""
    root = folder / "large" / "collections"
    step = 0
    while _size(root) < total_bytes:
        answer_of(partial(world.write_step, root, step, step))
        step += 1
    size = _size(root)
    taken: dict[str, list[tuple[float, float]]] = {}
    for _ in range(ROUNDS):
        for name, work in (
            ("cp and SHA-256", lambda: _copy(root, folder / "copy")),
            ("push", lambda: world.push_all(root, (folder / "store").as_uri())),
            ("pull", lambda: world.pull_only(folder / "pulled", (folder / "store").as_uri())),
        ):
            taken.setdefault(name, []).append(_timed(work))
        for each in ("copy", "store", "pulled"):
            shutil.rmtree(folder / each)
    medians = {
        name: {
            "seconds": round(statistics.median(wall for wall, _ in times), 2),
            "processor_seconds": round(statistics.median(cpu for _, cpu in times), 2),
        }
        for name, times in taken.items()
    }
    return {"bytes": size, "rounds": ROUNDS, **medians}


def _timed(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds and seconds of processor time of a forked process."""

    def run() -> list[float]:
        before, started = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
        work()
        wall, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_SELF)
        return [wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime]

    wall, cpu = cast(list[float], answer_of(run))
    return wall, cpu


def _size(root: Path) -> int:
    if not (root / NAME).exists():
        return 0
    return sum(path.stat().st_size for path in _files(root))


def _files(root: Path) -> list[Path]:
    return list(files_here(Collection.open(root, NAME)).values())


def _copy(root: Path, target: Path) -> None:
    """Copies every file that is pushed, forces it to the disk, and computes its SHA-256."""
    target.mkdir()
    for number, source in enumerate(_files(root)):
        copy = target / str(number)
        shutil.copyfile(source, copy)
        descriptor = os.open(copy, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)
        with copy.open("rb") as file:
            hashlib.file_digest(file, "sha256")
