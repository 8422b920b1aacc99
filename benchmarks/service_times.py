"""How do the processor times of searches spread: from query to query, and from one run of a query to the
next?

`tercet plan` simulates shards by these two distributions (`cluster/capacity/spread.py`), so only shares of
the mean are kept, at evenly spaced quantiles. Documents and queries are those of scale.py, fewer; a process
on one core, warm, times each search by its processor time.

Run: python -m benchmarks.service_times [--documents 50000]
"""

import argparse
import json
import os
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks import scale
from benchmarks.recording import dated, write
from tercet.index.snapshot import Snapshot
from tercet.models.checkpoint import SHIPPED
from tercet.models.encoder import encode
from tercet.models.loader import load_encoder
from tercet.models.representations import Float64, Representations

PASSAGES, REPEATS, WARM_UP = 3_000, 20, 2
QUANTILES = np.linspace(0, 1, 21)


def processor_seconds(snapshot: Snapshot, queries: Representations) -> Float64:
    """Of each search: float64[queries, REPEATS]."""
    rows = [queries.take(np.array([row])) for row in range(len(queries))]
    times = np.zeros((len(rows), WARM_UP + REPEATS))
    for repeat in range(WARM_UP + REPEATS):
        for row, query in enumerate(rows):
            started = time.process_time_ns()
            snapshot.search(query)
            times[row, repeat] = (time.process_time_ns() - started) / 1e9
    return times[:, WARM_UP:]


def spread(values: Float64) -> list[float]:
    """Quantiles beside their mean, so that numbers drawn from them have a mean of 1."""
    found = np.quantile(values, QUANTILES)
    mean = float(np.mean((found[1:] + found[:-1]) / 2))
    return [round(float(value) / mean, 3) for value in found]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=50_000)
    arguments = parser.parse_args()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    encoder = load_encoder(str(scale.ROOT / "checkpoints" / SHIPPED[0]))
    texts, asked = scale.passages()
    real = encode(encoder, texts[:PASSAGES], "document")
    queries = encode(encoder, asked, "query")
    with tempfile.TemporaryDirectory() as folder:
        collection, _ = scale.built(Path(folder), encoder, real, arguments.documents)
        times = processor_seconds(collection.snapshot(), queries)
    by_query = np.median(times, axis=1)
    record = {
        "load": round(os.getloadavg()[0], 1),
        "documents": arguments.documents,
        "queries": len(by_query),
        "runs": REPEATS,
        "mean_ms": round(1000 * float(times.mean()), 3),
        "by_query": spread(by_query),
        "by_run": spread((times / by_query[:, None]).reshape(-1)),
    }
    print(json.dumps(record))
    write("service_times", dated(record))


if __name__ == "__main__":
    main()
