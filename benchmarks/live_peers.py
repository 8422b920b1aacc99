"""What do writes cost beside Milvus Lite and Qdrant's local mode? All on one disk.

Each system puts the same documents, a dense vector of 384 dimensions and 100 terms each. Measured are puts
that are acknowledged in a second, one by one and by 100, and the time until a search finds a put and misses a
delete.

Run: python -m benchmarks.live_peers PYTHON_OF_MILVUS_LITE PYTHON_OF_QDRANT_CLIENT [--no-record]
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.recording import ROOT, dated, write

PEERS = ROOT / "benchmarks" / "peers"


def speed(python: str, script: str, folder: str) -> dict[str, float]:
    """What a system's script measures, by the Python that runs it."""
    own = {"PYTHONPATH": str(ROOT / "src")} if script == "tercet_writes.py" else {}
    done = subprocess.run(
        [python, str(PEERS / script), folder],
        env={**os.environ, **own},
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("milvus", metavar="PYTHON_OF_MILVUS_LITE")
    parser.add_argument("qdrant", metavar="PYTHON_OF_QDRANT_CLIENT")
    parser.add_argument("--folder", type=Path, help="a folder on the disk to be used")
    parser.add_argument("--no-record", action="store_true", help="leave benchmarks/results alone")
    asked = parser.parse_args()
    result: dict[str, Any] = {}
    systems = (
        ("tercet", sys.executable, "tercet_writes.py"),
        ("milvus-lite", asked.milvus, "milvus_writes.py"),
        ("qdrant-local", asked.qdrant, "qdrant_writes.py"),
    )
    for name, python, script in systems:
        with tempfile.TemporaryDirectory(prefix="tercet-peers-", dir=asked.folder) as folder:
            result[name] = speed(python, script, str(Path(folder) / "speed"))
            print(json.dumps({name: result[name]}, indent=2), flush=True)
    if not asked.no_record:
        write("live_peers", dated(result))


if __name__ == "__main__":
    main()
