"""What does it cost that the token vectors of candidates are on the disk, asked for at once or one by one?

On a collection that `scale.py --folder FOLDER` built. Each way has a process of its own, before which the
files of token codes and lexical rows are put out of memory. Each query's candidates are retrieved once, so
that all but token codes is in memory again, as it mostly is where a collection is larger than that; then each
is searched once.

Run: python -m benchmarks.cold FOLDER [--documents 4000000]
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from benchmarks import scale
from benchmarks.recording import ROOT, dated, write
from tercet.index.collection import Collection
from tercet.index.files.pieces import Pieces
from tercet.models.checkpoint import SHIPPED
from tercet.models.encoder import encode
from tercet.models.loader import load_encoder

QUERIES = 50
COLD = ("token_codes", "forward_token_ids", "forward_weights")
WAYS = ("one by one", "at once")


def put_out_of_memory(folder: Path) -> None:
    """Whatever of the candidates' rows no process has mapped."""
    for path in folder.rglob("*.npy"):
        if path.name.startswith(COLD):
            with path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def measured(folder: Path, name: str, way: str) -> dict[str, float]:
    """Milliseconds of the median, and of the median of the first ten."""
    encoder = load_encoder(str(ROOT / "checkpoints" / SHIPPED[0]))
    queries = encode(encoder, scale.passages()[1][:QUERIES], "query")
    rows = [queries.take(np.array([place])) for place in range(QUERIES)]
    put_out_of_memory(folder / name)
    snapshot = Collection.open(folder, name).snapshot()
    if way != "at once":
        Pieces.ask_for = lambda self: None  # type: ignore[method-assign]
    for query in rows:
        snapshot.retrieve(query)
    times = []
    for query in rows:
        started = time.perf_counter()
        snapshot.search(query)
        times.append(1000 * (time.perf_counter() - started))
    return {
        "median_ms": round(float(np.median(times)), 1),
        "first_ten_median_ms": round(float(np.median(times[:10])), 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--documents", type=int, default=4_000_000)
    parser.add_argument("--way", choices=WAYS, help="of a process that this one starts")
    asked = parser.parse_args()
    if asked.way:
        print(json.dumps(measured(asked.folder, f"scale-{asked.documents}", asked.way)))
        return
    found = {}
    for way in WAYS:
        command = [
            sys.executable,
            "-m",
            "benchmarks.cold",
            str(asked.folder),
            "--way",
            way,
            "--documents",
            str(asked.documents),
        ]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        found[way] = json.loads(done.stdout.splitlines()[-1])
        print(f"{way:>10} {found[way]}", flush=True)
    record = {
        "documents": asked.documents,
        "queries": QUERIES,
        "searches": found,
    }
    write("cold", dated(record))


if __name__ == "__main__":
    main()
