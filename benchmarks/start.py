"""What processor time does a server take until it is ready, and what do imports take of it?

A start before the others leaves their bytecode, as an installation does. The least of several is told, as
other processes can only add to it.

Run: python -m benchmarks.start [--starts 5] [--no-record]
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.recording import dated, write
from benchmarks.serving.server import environment, serving

IMPORTS = ("tercet.index.collection", "tercet.service.serving")


def until_ready(data: Path) -> float:
    """Seconds of processor time until `/ready` answers 200, with nothing in the data root."""
    with serving(data) as server:
        return server.cpu_seconds


def importing(module: str) -> float:
    """Seconds of processor time of a process that imports a module, and does nothing more."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", f"import {module}"], env=environment({}), check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Measures, prints and records."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--starts", type=int, default=5)
    parser.add_argument("--no-record", action="store_true")
    given = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory() as folder:
        until_ready(Path(folder))
        ready = min(until_ready(Path(folder)) for _ in range(given.starts))
    imports = {module: min(importing(module) for _ in range(given.starts)) for module in IMPORTS}
    result = {
        "starts": given.starts,
        "processor_seconds": {
            "until_ready": round(ready, 2),
            **{f"import {module}": round(seconds, 2) for module, seconds in imports.items()},
        },
    }
    print(json.dumps(result, indent=2))
    if not given.no_record:
        write("start", dated(result))


if __name__ == "__main__":
    main()
