"""Breaks one guarantee after another in a copy of the tree, and tells which test notices.

    python -m tests.broken_lines.run [NAME...]

`lines.toml` has the lines, what each is replaced by, and the tests that are to fail then; `results.json` has
which one did when a line was broken last. Ends with 1 where none did.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.recording import ROOT, dated, machine

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results.json"
COMPILED = ("index/native/*.so", "models/native/*.so")
SOME_FAILED = 1  # pytest's exit status; others say that tests could not be run
FAILED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.M)


@dataclass(frozen=True, slots=True)
class BrokenLine:
    """A text that occurs once in a file, what replaces it, the guarantee that this breaks, and the tests that
    are to notice.
    """

    name: str
    file: str
    text: str
    broken: str
    guarantee: str
    tests: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """caught_by: the first test that failed, None where none did."""

    caught_by: str | None
    seconds: float


def read_lines() -> list[BrokenLine]:
    """Those of `lines.toml`, in order."""
    entries = tomllib.loads((HERE / "lines.toml").read_text(encoding="utf-8"))["line"]
    return [BrokenLine(**{**entry, "tests": tuple(entry["tests"])}) for entry in entries]


def copy_tree(target: Path) -> None:
    """Copies the files that git tracks, as they are now, and what was compiled."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    tracked = [ROOT / name for name in listed.decode().split("\0") if name]
    for source in [*tracked, *(path for pattern in COMPILED for path in ROOT.glob(pattern))]:
        copied = target / source.relative_to(ROOT)
        copied.parent.mkdir(parents=True, exist_ok=True)
        if source.exists():
            shutil.copy2(source, copied, follow_symlinks=False)


def first_failure(tree: Path, tests: Sequence[str]) -> str | None:
    """The first of some tests that fails in a tree, None where all pass. Raises RuntimeError where they
    cannot be run.
    """
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-rfE", "--tb=no", "-p", "no:cacheprovider"]
    environment = {**os.environ, "PYTHONPATH": str(tree / "src")}
    ended = subprocess.run([*command, *tests], cwd=tree, env=environment, capture_output=True, text=True)
    if ended.returncode == 0:
        return None
    failed = FAILED.search(ended.stdout)
    if ended.returncode != SOME_FAILED or failed is None:
        raise RuntimeError(f"pytest ended with {ended.returncode}:\n{ended.stdout}{ended.stderr}")
    return failed[1]


def tried(tree: Path, line: BrokenLine, number: int) -> Outcome:
    """Breaks a line of the tree, runs its tests, and mends it. number: another one for each line."""
    path, started = tree / line.file, time.perf_counter()
    sound = path.read_text(encoding="utf-8")
    if sound.count(line.text) != 1:
        raise ValueError(f"{line.name}: its text occurs {sound.count(line.text)} times in {line.file}")
    status = path.stat()
    try:
        path.write_text(sound.replace(line.text, line.broken), encoding="utf-8")
        # Compiled modules are told from outdated ones by second and size, which may both be the same.
        os.utime(path, (number, number))
        caught_by = first_failure(tree, line.tests)
    finally:
        path.write_text(sound, encoding="utf-8")
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    return Outcome(caught_by, time.perf_counter() - started)


def record(lines: Sequence[BrokenLine], outcomes: Mapping[str, Outcome], before: Mapping[str, Any]) -> None:
    """Writes what caught each line, also those that were not broken this time."""
    former = json.loads(RESULTS.read_text(encoding="utf-8"))["caught_by"] if RESULTS.exists() else {}
    found = former | {name: outcome.caught_by for name, outcome in outcomes.items()}
    caught = {line.name: found[line.name] for line in lines if line.name in found}
    RESULTS.write_text(json.dumps(dated({"caught_by": caught}, before), indent=2) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="lines to break, by default all")
    names = parser.parse_args().names
    lines = read_lines()
    if unknown := set(names) - {line.name for line in lines}:
        parser.error(f"there are no lines {', '.join(sorted(unknown))}")
    before, outcomes = machine(), dict[str, Outcome]()
    with tempfile.TemporaryDirectory() as folder:
        copy_tree(Path(folder))
        chosen = [line for line in lines if not names or line.name in names]
        every = sorted({test for line in chosen for test in line.tests})
        if failed := first_failure(Path(folder), every):
            raise SystemExit(f"{failed} fails as it is; mend that first")
        for number, line in enumerate(chosen, start=1):
            outcomes[line.name] = outcome = tried(Path(folder), line, number)
            print(f"{line.name:34} | {outcome.caught_by or 'NOT CAUGHT'} | {outcome.seconds:.1f}", flush=True)
    record(lines, outcomes, before)
    raise SystemExit(any(outcome.caught_by is None for outcome in outcomes.values()))


if __name__ == "__main__":
    main()
