"""Tries the packages for frameworks: in environments of their own, by the frameworks' tests, with a server.

Names are those of `parts.py`; without any, all of them, and benchmarks/results/outside.json gets the summary.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from environments import Environment
from parts import PARTS, ROOT, Part
from results import summary
from server import Server, demo_server

HERE = Path(__file__).resolve().parent
ENVIRONMENTS = ROOT / ".venv-outside"
RESULTS = ROOT / "benchmarks" / "results" / "outside.json"


def main() -> None:
    """Runs the parts; the exit code is 1 where one of them failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument(
        "--tercet", type=Path, default=ROOT / ".venv" / "bin" / "tercet", help="the command that serves"
    )
    parser.add_argument(
        "--renew", action="store_true", help="take the newest versions, and write them to constraints.txt"
    )
    arguments = parser.parse_args()
    unknown = set(arguments.names) - {part.name for part in PARTS}
    if unknown:
        parser.error(
            f"there is no {', '.join(sorted(unknown))}; there are {', '.join(p.name for p in PARTS)}"
        )
    if not arguments.tercet.exists():
        parser.error(f"{arguments.tercet} is not there; run make demo or make setup, or give --tercet")
    chosen = [part for part in PARTS if not arguments.names or part.name in arguments.names]
    with tempfile.TemporaryDirectory() as folder, demo_server(arguments.tercet, Path(folder)) as server:
        found = {part.name: tried(part, server, Path(folder), arguments.renew) for part in chosen}
    for name, result in found.items():
        show(name, result)
    if not arguments.names:
        RESULTS.write_text(json.dumps(report(found), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    sys.exit(any(result["failed"] for result in found.values()))


def tried(part: Part, server: Server, folder: Path, renew: bool) -> dict[str, Any]:
    """Installs a part, checks its types and runs its tests."""
    print(f"{part.name}: installing", flush=True)
    environment = Environment(ENVIRONMENTS / part.name)
    environment.install(part, folder / "wheels", renew=renew)
    print(f"{part.name}: testing", flush=True)
    began, failed = time.monotonic(), []
    if part.typed and subprocess.run([environment.python, "-m", "mypy"], cwd=part.folder).returncode:
        failed.append("mypy --strict")
    junit = folder / f"{part.name}.xml"
    subprocess.run(
        [environment.python, "-m", "pytest", "-q", "-p", "tercet_fixtures", f"--junit-xml={junit}", "tests"],
        cwd=part.folder,
        env={
            **os.environ,
            "TERCET_URL": server.url,
            "TERCET_CLIENT_KEY": server.key,
            "PYTHONPATH": str(HERE),
            "PYTHONDONTWRITEBYTECODE": "1",
        },
    )
    result = (
        summary(junit) if junit.exists() else {"passed": 0, "suites": {}, "skipped": [], "failed": ["pytest"]}
    )
    versions = environment.versions()
    return {
        **result,
        "failed": [*failed, *result["failed"]],
        "seconds": round(time.monotonic() - began, 1),
        "versions": {name: versions.get(name) for name in part.shown},
    }


def show(name: str, result: dict[str, Any]) -> None:
    """A part's line, with its skips and failures below."""
    versions = ", ".join(f"{package} {version}" for package, version in result["versions"].items())
    print(f"{name} ({versions}): {result['passed']} passed in {result['seconds']} s")
    for suite, count in result["suites"].items():
        print(f"    {count:3} {suite}")
    for skip in result["skipped"]:
        print(f"    skipped {skip['test']}: {skip['reason']}")
    for test in result["failed"]:
        print(f"    FAILED {test}")


def report(found: dict[str, Any]) -> dict[str, Any]:
    """The summary with date, hardware and versions."""
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "command": "make outside",
        "hardware": {"processor": processor(), "cpus": len(os.sched_getaffinity(0))},
        "python": platform.python_version(),
        "parts": found,
    }


def processor() -> str:
    """The processor's name."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


if __name__ == "__main__":
    main()
