"""What serving holds under load, and what a search and an encoding cost through it, part by part.

Each part starts real servers, prints a table and says which bars it missed. Ratios are of one run.

Run: python -m benchmarks.serve_load [PART ...] [--quick]
"""

import argparse
import importlib
import json
import sys

from benchmarks.recording import dated, earlier, machine, write

PARTS = ("overload", "fairness", "latency", "embed")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--quick", action="store_true", help="a shorter run that is not recorded")
    asked = parser.parse_args()
    record = earlier("serve_load")
    missed: list[str] = []
    for part in asked.parts or PARTS:
        before = machine()
        figures, misses = importlib.import_module(f"benchmarks.serving.{part}").measure(quick=asked.quick)
        record[part] = dated({**figures, "missed": misses}, before)
        missed += [f"{part}: {miss}" for miss in misses]
        print(json.dumps({part: record[part]}, indent=2))
        if not asked.quick:
            write("serve_load", record)
    if missed:
        sys.exit("missed:\n" + "\n".join(missed))


if __name__ == "__main__":
    main()
