"""How long does a whole search take in a small real collection, without and with the encoding of its query?

Collections of folders in BEIR's layout are built by `tercet collection build` with its defaults, and with
token vectors as `residual1`. Judged queries are encoded one by one before, and each is searched for by the
three sides and default settings in one process, warm. A query's time is the least of several passes.

Run: python -m benchmarks.search [FOLDER ...] [--checkpoint minilm-m3]   (default: ../shared/data/cranfield)
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.recording import ROOT, dated, machine, write
from benchmarks.serving.cranfield import CRANFIELD
from benchmarks.serving.server import build_command
from tercet.evaluation.beir import TEST, read_judged_queries
from tercet.index.collection import Collection
from tercet.index.snapshot import Snapshot
from tercet.models.checkpoint import ENGLISH
from tercet.models.encoder import Encoder, encode
from tercet.models.loader import load_encoder
from tercet.models.representations import Float64, Representations

KINDS = {"residual1": ["--token-codec", "residual1"], "int8": []}
PASSES = 10
LIMIT_MS = 2.5  # of the median search among cranfield's abstracts

Figures = dict[str, Any]


def built(root: Path, folder: Path, checkpoint: str, kind: str) -> Snapshot:
    """The collection of a folder, in a file system folder of its own."""
    options = ["--data", str(root), "--checkpoint", checkpoint, *KINDS[kind]]
    subprocess.run(build_command(folder, kind, *options), cwd=ROOT, check=True, capture_output=True)
    return Collection.open(root / "collections", kind).snapshot()


def least(action: Callable[[int], object], count: int) -> Float64:
    """The milliseconds of each of so many actions, the least of several passes."""
    times = np.empty((PASSES, count))
    for each in times:
        for number in range(count):
            started = time.perf_counter()
            action(number)
            each[number] = 1000 * (time.perf_counter() - started)
    shortest: Float64 = times.min(axis=0)
    return shortest


def described(times: Float64) -> Figures:
    return {
        "median_ms": round(float(np.median(times)), 3),
        "p99_ms": round(float(np.quantile(times, 0.99)), 3),
    }


def searched(snapshot: Snapshot, queries: Sequence[Representations]) -> Figures:
    """The time of a search, and of its two steps."""
    results = [snapshot.search(query) for query in queries]
    steps = [(1000 * each.retrieve_seconds, 1000 * each.score_seconds) for each in results]
    candidates = [len(snapshot.retrieve(query)) for query in queries]
    retrieve, score = np.median(steps, axis=0).tolist()
    return {
        "token_codec": snapshot.settings.token_codec,
        "candidates": round(float(np.mean(candidates)), 1),
        **described(least(lambda number: snapshot.search(queries[number]), len(queries))),
        "retrieve_median_ms": round(retrieve, 3),
        "score_median_ms": round(score, 3),
    }


def measured(encoder: Encoder, checkpoint: str, root: Path, folder: Path) -> Figures:
    texts = list(read_judged_queries(folder, TEST).queries.values())
    queries = [encode(encoder, [text], "query") for text in texts]
    snapshots = {kind: built(root, folder, checkpoint, kind) for kind in KINDS}
    return {
        "documents": snapshots["int8"].documents,
        "queries": len(queries),
        "query_tokens": round(float(np.mean([query.tokens[0] for query in queries])), 1),
        "encode": described(least(lambda number: encode(encoder, [texts[number]], "query"), len(texts))),
        **{kind: searched(snapshot, queries) for kind, snapshot in snapshots.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, metavar="FOLDER", default=[CRANFIELD])
    parser.add_argument("--checkpoint", default=ENGLISH)
    asked = parser.parse_args()
    encoder, before = load_encoder(asked.checkpoint), machine()
    sets: Figures = {}
    for folder in asked.folders:
        with tempfile.TemporaryDirectory(prefix="tercet-search-") as scratch:
            found = sets[folder.name] = measured(encoder, asked.checkpoint, Path(scratch), folder)
        for name in ("encode", *KINDS):
            times = found[name]
            print(
                f"{folder.name:>12} {name:>8} {times['median_ms']:7.2f} ms median, {times['p99_ms']:.2f} p99",
                flush=True,
            )
    record = {
        "checkpoint": asked.checkpoint,
        "bar": {"cranfield": {"median_ms": LIMIT_MS}},
        "sets": sets,
    }
    write("search", dated(record, before))


if __name__ == "__main__":
    main()
