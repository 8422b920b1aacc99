"""What live collections cost: puts, searches beside them, growth, restarts.

Each part prints its figures and says which bars it missed. Ratios are of one run. Ready documents have a
dense vector of 384, 100 lexical weights and 60 token vectors of 128. The work folder has to lie on a disk,
not in memory, since writes are forced.

Run: PYTHONPATH=clients/python/src python -m benchmarks.live [PART ...] [--quick] [--work FOLDER]
"""

import argparse
import importlib
import json
import sys
import tempfile
from pathlib import Path

from benchmarks.recording import dated, earlier, machine, write

# Those that other parts would disturb stand first.
PARTS = ("puts", "http", "ingest", "restart", "searches", "singles", "growth")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--quick", action="store_true", help="a shorter run that is not recorded")
    parser.add_argument("--work", type=Path, default=Path(), help="where collections are written")
    asked = parser.parse_args()
    record = earlier("live")
    missed: list[str] = []
    for part in asked.parts or PARTS:
        before = machine()
        with tempfile.TemporaryDirectory(dir=asked.work.resolve(), prefix="live-") as work:
            module = importlib.import_module(f"benchmarks.writes.{part}")
            figures, misses = module.measure(Path(work), quick=asked.quick)
        record[part] = dated({**figures, "missed": misses}, before)
        missed += [f"{part}: {miss}" for miss in misses]
        print(json.dumps({part: record[part]}, indent=2), flush=True)
        if not asked.quick:
            write("live", record)
    if missed:
        sys.exit("missed:\n" + "\n".join(missed))


if __name__ == "__main__":
    main()
