"""Upserts a second as a collection grows, half of them new documents and half in the place of others."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.writes.documents import TEXT, Batches, collection
from tercet.index.candidates import Document
from tercet.index.live.collection import LiveCollection

BATCH = 100
SIZES, QUICK_SIZES = (10_000, 50_000, 100_000, 250_000, 500_000), (1_000, 5_000)
MEASURED = 40_000  # documents that are upserted at each size, with some flushes among them
SHARE = 0.9


def measure(work: Path, *, quick: bool) -> tuple[dict[str, Any], list[str]]:
    """Upserts a second at each size; the last at least 90% of the first."""
    sizes, measured = (QUICK_SIZES, 1_000) if quick else (SIZES, MEASURED)
    batches, random = Batches(BATCH), np.random.default_rng(0)
    rates: dict[str, float] = {}
    filled = 0
    with LiveCollection(collection(work)) as live:
        for size in sizes:
            while filled < size:
                live.put(*batches.of(filled // BATCH))
                filled += BATCH
            started = time.perf_counter()
            for turn in range(measured // BATCH):
                documents, encoded = batches.of(filled // BATCH)
                places = random.choice(filled, BATCH // 2, replace=False)
                documents[: BATCH // 2] = [Document(f"d{place:08d}", TEXT) for place in places]
                live.put(documents, encoded)
                filled += BATCH
                if turn == 0:
                    started = time.perf_counter()
            rates[str(size)] = round((measured - BATCH) / (time.perf_counter() - started))
            print(size, rates[str(size)], flush=True)
    share = rates[str(sizes[-1])] / rates[str(sizes[0])]
    missed = [] if share >= SHARE else [f"{share:.2f} of the first rate at {sizes[-1]}, not {SHARE}"]
    return {"upserts_a_second": rates, "share_at_the_end": round(share, 3)}, missed
