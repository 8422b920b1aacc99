"""Puts of 100 ready documents in Python, each forced to the disk; and how much is written for them."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from benchmarks.writes.documents import Batches, bytes_written, collection
from tercet.index.live.collection import LiveCollection
from tercet.index.live.entries import encode_rows
from tercet.index.segments.checks import check_batch

BATCH = 100
DOCUMENTS_A_SECOND = 5_000


def measure(work: Path, *, quick: bool) -> tuple[dict[str, Any], list[str]]:
    """Documents a second, and bytes written to the disk for each byte of stored documents."""
    documents = 5_000 if quick else 100_000
    batches, made = Batches(BATCH), collection(work)
    some, encoded = batches.of(0)
    stored = len(encode_rows(check_batch(some, encoded, made.settings))) / BATCH
    with LiveCollection(made) as live:
        for number in range(10):  # compiled kernels load
            live.put(*batches.of(number))
        written, started = bytes_written(), time.perf_counter()
        for number in range(10, 10 + documents // BATCH):
            live.put(*batches.of(number))
        seconds = time.perf_counter() - started
        live.flush()
        while live.merge():
            pass
        amplification = (bytes_written() - written) / (stored * documents)
    rate = documents / seconds
    figures = {
        "documents": documents,
        "documents_a_second": round(rate),
        "bytes_a_document": round(stored),
        "bytes_written_a_stored_byte": round(amplification, 2),
    }
    missed = [] if rate >= DOCUMENTS_A_SECOND else [f"{rate:.0f} documents/s, not {DOCUMENTS_A_SECOND}"]
    return figures, missed
