"""What serving holds under load, faults, hostile clients and large requests, part by part.

Each part starts real servers, prints a table and says which bars it missed. Ratios are of one run.

Run: python -m benchmarks.serve_load [PART ...] [--quick]
"""

import argparse
import datetime
import importlib
import json
import sys
from pathlib import Path

from benchmarks.serving.server import machine

RESULT = Path(__file__).resolve().parent / "results" / "serve_load.json"
MEASURED = ("overload", "loop", "latency", "embed")
TRIED = ("workers", "clients", "many_collections", "large", "fuzz")
PARTS = MEASURED + TRIED
FOLDERS = dict.fromkeys(MEASURED, "benchmarks.serving") | dict.fromkeys(TRIED, "tests.endurance.serving")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--quick", action="store_true", help="a shorter run that is not recorded")
    asked = parser.parse_args()
    record = json.loads(RESULT.read_text(encoding="utf-8")) if RESULT.exists() else {}
    missed: list[str] = []
    for part in asked.parts or PARTS:
        before = machine()
        figures, misses = importlib.import_module(f"{FOLDERS[part]}.{part}").measure(quick=asked.quick)
        record[part] = {
            "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
            "machine": before,
            **figures,
            "missed": misses,
        }
        missed += [f"{part}: {miss}" for miss in misses]
        print(json.dumps({part: record[part]}, indent=2))
        if not asked.quick:
            RESULT.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    if missed:
        sys.exit("missed:\n" + "\n".join(missed))


if __name__ == "__main__":
    main()
