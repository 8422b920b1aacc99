"""Reads changed files in a process of its own: tells those that crash it, hang, or raise what has no name."""

from __future__ import annotations

import gc
import json
import mmap
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tests.strangers.mutations import Mutation, put

CPU_SECONDS = 1.0  # of one reading
WALL_SECONDS = 60.0  # until a reading that takes no processor time is said to hang
MEMORY_BYTES = 256 << 20  # more than at the beginning
# Of the system and of libraries, and folders for what is worked on, which are removed name by name.
SCRATCH = f"{tempfile.gettempdir()}/tercet-scratch-"
OPENED_ELSEWHERE = ("/proc/", "/sys/", "/usr", sys.prefix, sys.base_prefix, SCRATCH, "content", "LOCK")


@dataclass(frozen=True)
class Target:
    """A file that is read. folder: which it lies in; mutation: how it is changed; read: reads and uses what
    the folder holds; named: errors that this may raise.
    """

    name: str
    folder: Path
    file: Path
    mutation: Mutation
    read: Callable[[], object]
    named: tuple[type[BaseException], ...]


@dataclass
class Outcome:
    """How many readings there were of each kind, and what was wrong with those that failed, by seed."""

    counts: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)


def try_mutations(target: Target, seeds: range, until: float = float("inf")) -> Outcome:
    """Reads a file as each seed changes it. until: time.monotonic() at which to stop."""
    outcome = Outcome()
    content = target.file.read_bytes()
    assert target.read() is not None
    first, source = seeds.start, Path(__file__).resolve().parents[2]
    # Garbage may be a session of onnxruntime, whose end in a child waits for threads that only this one has.
    gc.collect()
    while first < seeds.stop and time.monotonic() < until:
        progress = mmap.mmap(-1, 8)
        told = os.memfd_create("told")
        child = os.fork()
        if child == 0:
            try:
                _run_child(target, content, range(first, seeds.stop), progress, told, until, source)
                os._exit(0)
            finally:
                os._exit(1)
        status = _wait(child, progress)
        os.lseek(told, 0, os.SEEK_SET)
        with os.fdopen(told) as lines:
            for line in lines:
                kind, what = json.loads(line)
                outcome.counts[kind] += what if isinstance(what, int) else 1
                if isinstance(what, str):
                    outcome.failures.append(f"{target.name} {what}")
        last = int.from_bytes(progress[:8], "little")
        if status == 0:
            break
        outcome.failures.append(f"{target.name} seed {last}: the process ended with {status}")
        outcome.counts["crashed"] += 1
        first = last + 1
    target.file.unlink(missing_ok=True)
    target.file.write_bytes(content)
    return outcome


def _wait(child: int, progress: mmap.mmap) -> int:
    """The exit status of a child, which is killed where it goes on with nothing for long."""
    last, since = progress[:8], time.monotonic()
    while True:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return status
        if progress[:8] != last:
            last, since = progress[:8], time.monotonic()
        elif time.monotonic() - since > WALL_SECONDS:
            os.kill(child, signal.SIGKILL)
            since = time.monotonic()
        time.sleep(0.02)


def _run_child(
    target: Target, content: bytes, seeds: range, progress: mmap.mmap, told: int, until: float, source: Path
) -> None:
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 2)  # where the libraries tell of what they do not take
    counts: Counter[str] = Counter()
    opened: list[str] = []
    allowed = tuple(map(str, (*OPENED_ELSEWHERE, target.folder, target.folder.resolve(), source)))

    def audit(event: str, arguments: tuple[object, ...]) -> None:
        if event == "open" and isinstance(arguments[0], str) and not arguments[0].startswith(allowed):
            opened.append(arguments[0])

    sys.addaudithook(audit)

    def tell(kind: str, what: object) -> None:
        os.write(told, (json.dumps([kind, what]) + "\n").encode())

    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    soft = memory * 1024 + (8 << 30)
    resource.setrlimit(resource.RLIMIT_AS, (soft, soft))
    for seed in seeds:
        if seed % 64 == 0 and time.monotonic() > until:
            break
        progress[:8] = seed.to_bytes(8, "little")
        what = put(Random(f"{target.name} {seed}"), target.file, content, target.mutation)
        opened.clear()
        started = time.process_time()
        try:
            target.read()
            counts["loaded"] += 1
        except target.named:
            counts["refused"] += 1
        except BaseException as error:  # noqa: BLE001 - whatever has no name of ours is told
            place = traceback.extract_tb(error.__traceback__)
            frames = [frame for frame in place if "tests" not in frame.filename] or place
            where = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}"
            ours = next((f for f in reversed(frames) if "site-packages" not in f.filename), frames[-1])
            tell(
                "failed",
                f"seed {seed} ({what}): {type(error).__name__} {str(error)[:150]!r} at {where}, "
                f"{Path(ours.filename).name}:{ours.lineno}",
            )
        taken = time.process_time() - started
        if taken > CPU_SECONDS:
            tell("failed", f"seed {seed} ({what}): it took {taken:.1f} s")
        if opened:
            tell("failed", f"seed {seed} ({what}): it opened {opened[0]}")
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        if (peak - memory) * 1024 > MEMORY_BYTES:
            tell("failed", f"seed {seed} ({what}): memory grew by {(peak - memory) >> 10} MiB")
            memory = peak
    for kind, count in counts.items():
        tell(kind, count)
