"""Tries every kernel of both packages with many damaged inputs, and prints how many each refused.

Run: python -m tests.index.native.try_damage [--inputs 1000000] [--kernel NAME] [--seed 0]
"""

from __future__ import annotations

import argparse
import time

from tests.index.native.damage import run, targets


def main() -> None:
    """Reads the options, and tries."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--kernel")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    for target in targets():
        if given.kernel in (None, target.kernel):
            started = time.perf_counter()
            refused = run(target, given.inputs, given.seed)
            seconds = time.perf_counter() - started
            print(  # noqa: T201
                f"{target.kernel}: {given.inputs:,} inputs, {refused:,} refused, {seconds:.1f} s", flush=True
            )


if __name__ == "__main__":
    main()
