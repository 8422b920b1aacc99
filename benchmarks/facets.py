"""How long do facets of 1,000,000 documents take, and are they the counts of these?

Keyword fields of 10 values, of 1,000, and of one for each document, in no order, in one segment and in 20;
over all documents, and over those that a filter of 1% and of 50% allows. The filter is remembered, as those
of an application are: what is timed is counting. Counts are held against NumPy's.

Run: python -m benchmarks.facets [--folder FOLDER]
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.filters import encoded, settings
from benchmarks.recording import dated, write
from tercet.index.candidates import Document, Facet, FacetValue
from tercet.index.collection import Collection
from tercet.index.documents.filters import parse_filter
from tercet.index.snapshot import Snapshot
from tercet.index.writer import SegmentLimits
from tercet.models.representations import Representations, SparseRows

DOCUMENTS, BATCH, DIMENSION = 1_000_000, 10_000, 8
VALUES = {"of_10": 10, "of_1000": 1_000, "own": DOCUMENTS}
FIELDS = {**dict.fromkeys(VALUES, "keyword"), "part": "integer"}
SEGMENTS = (1, 20)
SHARES = {"all": None, "1%": 0.01, "50%": 0.5}
LIMIT, PASSES = 10, 9
BAR_MS = 20

Numbers = dict[str, npt.NDArray[np.int64]]


def drawn() -> Numbers:
    """The number of each document's value in each field, and one by which filters choose; the same at every
    call.
    """
    generator = np.random.default_rng(21)
    return {
        "of_10": generator.integers(0, 10, DOCUMENTS),
        "of_1000": generator.integers(0, 1_000, DOCUMENTS),
        "own": generator.permutation(DOCUMENTS),
        "part": generator.permutation(DOCUMENTS),
    }


def value(number: int) -> str:
    return f"value {number:07}"


def built(folder: Path, numbers: Numbers, segments: int) -> Snapshot:
    """The collection of so many segments, which is made where it is not there."""
    name = f"facets-{segments}"
    if not (folder / name).exists():
        collection = Collection.create(folder, name, settings(name, DIMENSION, FIELDS, "flat"))
        generator = np.random.default_rng(22)
        with collection.writer(SegmentLimits(documents=DOCUMENTS // segments)) as writer:
            for first in range(0, DOCUMENTS, BATCH):
                rows = range(first, first + BATCH)
                writer.add([document(numbers, row) for row in rows], batch(generator))
            writer.publish()
    return Collection.open(folder, name).snapshot()


def document(numbers: Numbers, row: int) -> Document:
    metadata: dict[str, Any] = {field: value(int(numbers[field][row])) for field in VALUES}
    return Document(f"d{row:07}", "", metadata={**metadata, "part": int(numbers["part"][row])})


def batch(generator: np.random.Generator) -> Representations:
    """Without lexical weights, as no facet looks at them."""
    none = SparseRows(np.zeros(BATCH + 1, np.int64), np.empty(0, np.int32), np.empty(0, np.float32))
    return encoded(generator.standard_normal((BATCH, DIMENSION), np.float32), none)


def expected(numbers: Numbers, field: str, share: float | None) -> Facet:
    """What a facet has to be."""
    kept = numbers["part"] < DOCUMENTS * (1 if share is None else share)
    found, counts = np.unique(numbers[field][kept], return_counts=True)
    commonest = np.argsort(-counts, kind="stable")[:LIMIT]
    values = map(value, found[commonest].tolist())
    return Facet(list(map(FacetValue, values, counts[commonest].tolist())), len(found), 0)


def measured(snapshot: Snapshot, numbers: Numbers, field: str, share: float | None) -> dict[str, float]:
    """Milliseconds of a facet."""
    tree = None if share is None else parse_filter({"lt": {"part": int(DOCUMENTS * share)}})
    times = []
    for _ in range(PASSES):
        started = time.perf_counter()
        facet = snapshot.facets({field: LIMIT}, tree)[field]
        times.append((time.perf_counter() - started) * 1e3)
    assert facet == expected(numbers, field, share)
    return {"median_ms": round(float(np.median(times[1:])), 2), "first_ms": round(times[0], 2)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--folder", type=Path, help="keeps the collections from run to run")
    arguments = parser.parse_args()
    numbers = drawn()
    lines: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="tercet-facets-") as scratch:
        for segments in SEGMENTS:
            snapshot = built(arguments.folder or Path(scratch), numbers, segments)
            for field, values in VALUES.items():
                for name, share in SHARES.items():
                    figures = measured(snapshot, numbers, field, share)
                    lines.append({"values": values, "segments": segments, "filter": name, **figures})
                    print(json.dumps(lines[-1]), flush=True)
    record = {
        "load_average": round(os.getloadavg()[0], 1),
        "documents": DOCUMENTS,
        "facets": lines,
    }
    write("facets", dated(record))
    assert all(line["median_ms"] <= BAR_MS for line in lines), f"more than {BAR_MS} ms"


if __name__ == "__main__":
    main()
