"""What do writes cost, and what is lost, beside Milvus Lite and Qdrant's local mode? All on one disk.

Each system puts the same documents, a dense vector of 384 dimensions and 100 terms each. Measured are puts
that are acknowledged in a second, one by one and by 100; the time until a search finds a put and misses a
delete; what was acknowledged and is gone after SIGKILL, and after a loss of power. For the latter a run is
recorded by strace, and carried out again on a model of a disk that keeps what was forced and nothing else
(`power/disk.py`).

Run: python benchmarks/live_peers.py PYTHON_OF_MILVUS_LITE PYTHON_OF_QDRANT_CLIENT [--kills 5] [--no-record]
"""

import argparse
import datetime
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from power.disk import Loss
from power.replay import Replay
from power.states import write_tree
from power.trace import calls, record
from serving.server import machine

HERE = Path(__file__).resolve().parent
RESULT = HERE / "results" / "live_peers.json"
PUTS = 200  # of the run that loses its power
FORCES = {"fsync", "fdatasync", "sync", "syncfs", "sync_file_range", "msync"}
SECONDS = (2.0, 4.0)  # of the runs that are killed


class System:
    """One system: a script and the Python that runs it."""

    def __init__(self, python: str, script: str, folder: Path) -> None:
        self._command = [python, str(HERE / "peers" / script)]
        self._folder = folder
        own = {"PYTHONPATH": str(HERE.parent / "src")} if script == "tercet_writes.py" else {}
        self._environment = {**os.environ, **own}

    def speed(self) -> dict[str, float]:
        """As the script measures it."""
        return dict(self._ask("speed", self._folder / "speed"))

    def kill(self, place: int, seconds: float) -> dict[str, int]:
        """What a run that was killed had been acknowledged, and has lost."""
        store, marks = self._folder / f"killed{place}", self._folder / f"marks{place}"
        command = [*self._command, "write", str(store), str(marks), "0"]
        process = subprocess.Popen(command, env=self._environment, stderr=subprocess.DEVNULL)
        while not marks.exists() or not marks.stat().st_size:
            assert process.poll() is None, "the writer ended by itself"
            time.sleep(0.01)
        time.sleep(seconds)
        process.kill()
        process.wait()
        acknowledged = len(marks.read_text(encoding="ascii").splitlines())
        return {"acknowledged": acknowledged, "lost": acknowledged - self._found(store, acknowledged)}

    def lose_power(self) -> dict[str, Any]:
        """What a run has lost of its acknowledged puts when power goes after the last of them.

        All is durable after the first put: what the making of a collection forces is not asked here.
        """
        base, marks, trace = (self._folder / name for name in ("base", "power-marks", "trace"))
        base.mkdir()
        command = [*self._command, "write", str(base / "store"), str(marks), str(PUTS)]
        record(command, trace, self._environment)
        replay, forces = Replay(str(base), str(marks)), 0
        for call in calls(trace):
            begun = len(replay.said) > 0
            replay.carry_out(call)
            if not begun and replay.said:
                replay.force_all()
            forces += begun and call.name in FORCES
            if len(replay.said) == PUTS:
                break
        after = self._folder / "after"
        after.mkdir()
        write_tree(Loss("lost", random.Random(0)).tree(replay.root), after)
        found: dict[str, Any] = {
            "acknowledged": PUTS,
            "forces_an_acknowledged_put": round(forces / (PUTS - 1), 2),
        }
        try:
            return {**found, "lost": PUTS - self._found(after / "store", PUTS)}
        except subprocess.CalledProcessError as error:
            return {**found, "lost": PUTS, "unreadable": error.stderr.strip().splitlines()[-1][:200]}

    def _found(self, store: Path, acknowledged: int) -> int:
        there = set(self._ask("read", store))
        return sum(number in there for number in range(acknowledged))

    def _ask(self, command: str, store: Path) -> Any:
        done = subprocess.run(
            [*self._command, command, str(store)],
            env=self._environment,
            capture_output=True,
            text=True,
            check=True,
        )
        return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("milvus", metavar="PYTHON_OF_MILVUS_LITE")
    parser.add_argument("qdrant", metavar="PYTHON_OF_QDRANT_CLIENT")
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="a folder on the disk to be used")
    parser.add_argument("--no-record", action="store_true", help="leave benchmarks/results alone")
    asked = parser.parse_args()
    result: dict[str, Any] = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": machine(),
    }
    systems = (
        ("tercet", sys.executable, "tercet_writes.py"),
        ("milvus-lite", asked.milvus, "milvus_writes.py"),
        ("qdrant-local", asked.qdrant, "qdrant_writes.py"),
    )
    generator = random.Random(0)
    for name, python, script in systems:
        with tempfile.TemporaryDirectory(prefix="tercet-peers-", dir=asked.folder) as folder:
            system = System(python, script, Path(folder))
            killed = [system.kill(place, generator.uniform(*SECONDS)) for place in range(asked.kills)]
            result[name] = {
                **system.speed(),
                "kills": {
                    "kills": asked.kills,
                    "acknowledged": sum(each["acknowledged"] for each in killed),
                    "lost": sum(each["lost"] for each in killed),
                },
                "loss_of_power": system.lose_power(),
            }
            print(json.dumps({name: result[name]}, indent=2), flush=True)
    if not asked.no_record:
        RESULT.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
