"""Tries every kernel of both packages with many damaged inputs, and prints how many each refused.

A step outside of an argument ends the process; with sanitizers, of memory that a kernel asks for, too.

Run: python -m tests.index.native.try_damage [--inputs 1000000] [--kernel NAME] [--seed 0] [--record FILE]
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import time
from pathlib import Path
from typing import Any

from tests.index.native.damage import PACKAGES, run, targets


def main() -> None:
    """Reads the options, and tries."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--kernel")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--record", type=Path, help="a JSON file of what was tried")
    given = parser.parse_args()
    record: dict[str, Any] = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "instructions": {name: module.AVAILABLE_INSTRUCTIONS for name, (module, _) in PACKAGES.items()},
        "sanitizers": "libasan" in os.environ.get("LD_PRELOAD", ""),
        "seed": given.seed,
        "inputs_each": given.inputs,
        "faults": 0,  # one ends this process
        "kernels": {},
    }
    for target in targets():
        if given.kernel in (None, target.kernel):
            started = time.process_time()
            refused = run(target, given.inputs, given.seed)
            seconds = round(time.process_time() - started, 1)
            print(  # noqa: T201
                f"{target.kernel}: {given.inputs:,} inputs, {refused:,} refused, {seconds} s", flush=True
            )
            record["kernels"][target.kernel] = {"refused": refused, "processor_seconds": seconds}
            if given.record is not None:
                given.record.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
