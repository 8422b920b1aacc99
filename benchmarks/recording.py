"""What all benchmarks share: where the repository is, what machine this is, and how results are written."""

from __future__ import annotations

import datetime
import json
import os
import platform
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
DATA = ROOT.parent / "shared" / "data"  # outside the repository, since licences differ


def peer_figures(python: str, script: str, *arguments: object) -> Any:
    """What a script below `peers` prints last, as JSON, run by the Python of the peer's environment."""
    command = [python, str(ROOT / "benchmarks" / "peers" / script), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def machine() -> dict[str, str | int | float]:
    """The hardware that figures belong to, and how busy it was."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    cpu = next(
        (line.partition(":")[2].strip() for line in lines if "model name" in line), platform.processor()
    )
    return {
        "cpu": cpu,
        "cores": os.cpu_count() or 0,
        "memory_gb": round(psutil.virtual_memory().total / 1e9),
        "python": platform.python_version(),
        "load": round(os.getloadavg()[0], 1),
    }


def dated(figures: Mapping[str, Any], before: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Figures with the date and the machine.

    before: the machine as it was before the run, whose load is not yet the benchmark's own.
    """
    return {"date": datetime.date.today().isoformat(), "machine": before or machine(), **figures}


def earlier(name: str) -> dict[str, Any]:
    """The result of this name that was written last, empty where there is none."""
    path = RESULTS / f"{name}.json"
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}


def write(name: str, record: Mapping[str, Any]) -> None:
    """Writes a result."""
    text = json.dumps(record, indent=2, ensure_ascii=False) + "\n"
    (RESULTS / f"{name}.json").write_text(text, encoding="utf-8")
