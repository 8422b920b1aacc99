"""A million changed files of strangers, each read and used in a process of its own kind.

Every one must be read or refused by a named error, within a second of processor time, in bounded memory, and
without a file opened outside its folder: a crash, a hang and an error without a name are failures, told with
the seed that makes the file again.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.index.strangers import collection_targets, faiss_targets
from tests.models.conftest import export_both, write_bert
from tests.models.strangers import graph_targets, settings_targets, tokenizer_targets, weights_targets
from tests.strangers.children import Target, try_mutations

MUTATIONS, QUICK_MUTATIONS = 1_000_000, 20_000
SHOWN = 5  # failures of a file


def targets(folder: Path) -> Iterator[Target]:
    """Every file that is changed."""
    for kind, make in (
        ("settings", settings_targets),
        ("tokenizers", tokenizer_targets),
        ("weights", weights_targets),
        ("faiss", faiss_targets),
        ("collection", collection_targets),
    ):
        yield from make(folder / kind)
    export_both(write_bert(folder / "bert"), folder / "exported")
    yield from graph_targets(folder, folder / "exported")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_MUTATIONS:,} in all")
    parser.add_argument("--mutations", type=int, help="in all, in equal parts of each file")
    parser.add_argument("--seed", type=int, default=0, help="the first one of each file")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="at most, in equal parts")
    arguments = parser.parse_args()
    count = arguments.mutations or (QUICK_MUTATIONS if arguments.quick else MUTATIONS)
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        every = list(targets(Path(folder)))
        share = -(-count // len(every))
        for target in every:
            until = time.monotonic() + 60 * arguments.minutes / len(every)
            outcome = try_mutations(target, range(arguments.seed, arguments.seed + share), until)
            failed += len(outcome.failures)
            print(f"{target.name}: {dict(outcome.counts)}, {len(outcome.failures)} failures", flush=True)
            print(*outcome.failures[:SHOWN], sep="\n", end="\n" if outcome.failures else "")
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
