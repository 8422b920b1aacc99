"""Puts over HTTP: ready documents by 100, bare and by `tercet-client`, and one that the server encodes."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from safetensors.numpy import save
from tercet_client import Client, EmbeddedDocuments, Embeddings, upsert

from benchmarks.serving.server import serving
from benchmarks.writes.documents import TEXT, Batches
from tercet.models.encoder import Encoder, encode
from tercet.models.loader import load_encoder
from tercet.models.representations import Representations

BATCH = 100
DOCUMENTS_A_SECOND = 1_500
CLIENT_SHARE = 0.8  # of the rate of bare requests
ADDED_MS = 8.0
BINARY = {"Content-Type": "application/x-safetensors"}


def measure(work: Path, *, quick: bool) -> tuple[dict[str, Any], list[str]]:
    """Documents a second of ready ones; milliseconds that a put takes beside encoding its document."""
    documents, singles = (2_000, 20) if quick else (50_000, 300)
    encoder = load_encoder("minilm-m3")
    with serving(work) as server, httpx.Client(base_url=server.url, timeout=60) as client:
        for name in ("ready", "streamed", "single"):
            client.put(f"/collections/{name}", json={}).raise_for_status()
        rate = ready_rate(client, encoder.info.fingerprint, documents)
        streamed = client_rate(server.url, encoder.info.fingerprint, documents)
        put_ms, encode_ms = single_ms(client, encoder, singles)
    added = put_ms - encode_ms
    figures = {
        "documents": documents,
        "ready_documents_a_second": round(rate),
        "client_documents_a_second": round(streamed),
        "put_median_ms": round(put_ms, 2),
        "encode_median_ms": round(encode_ms, 2),
        "added_ms": round(added, 2),
    }
    missed = [] if rate >= DOCUMENTS_A_SECOND else [f"{rate:.0f} documents/s, not {DOCUMENTS_A_SECOND}"]
    if streamed < CLIENT_SHARE * rate:
        missed.append(f"the client has {streamed / rate:.2f} of the bare rate, not {CLIENT_SHARE}")
    missed += [] if added <= ADDED_MS else [f"a put adds {added:.1f} ms to encoding, not {ADDED_MS:g}"]
    return figures, missed


def ready_rate(client: httpx.Client, fingerprint: str, documents: int) -> float:
    """Documents a second by one client; what it sends is prepared before."""
    batches = Batches(BATCH)
    parts = [arrays_of(batches.of(number)[1]) for number in range(8)]
    seconds = 0.0
    for number in range(documents // BATCH + 2):
        lines = (json.dumps({"id": each.id, "text": each.text}) for each in batches.of(number)[0])
        arrays = {
            **parts[number % len(parts)],
            "documents": np.frombuffer("\n".join(lines).encode(), np.uint8),
        }
        body = save(arrays, {"fingerprint": fingerprint})
        started = time.perf_counter()
        client.put("/collections/ready/documents", content=body, headers=BINARY).raise_for_status()
        seconds += time.perf_counter() - started if number >= 2 else 0.0  # kernels load at first
    return documents / seconds


def client_rate(url: str, fingerprint: str, documents: int) -> float:
    """Documents a second that the client packs and sends, several requests at a time."""
    batches = Batches(BATCH)
    parts = [arrays_of(batches.of(number)[1]) for number in range(8)]

    def stream() -> Iterator[EmbeddedDocuments]:
        tokens, truncated = np.zeros(BATCH, np.int64), np.zeros(BATCH, np.bool_)
        for number in range(documents // BATCH):
            arrays = parts[number % len(parts)]
            yield EmbeddedDocuments(
                [{"id": each.id, "text": each.text} for each in batches.of(number)[0]],
                Embeddings("minilm-m3", fingerprint, tokens, truncated, **arrays),
            )

    with Client(url) as client:
        started = time.perf_counter()
        done = upsert(client, "streamed", stream())
        assert done.documents == documents
        return documents / (time.perf_counter() - started)


def arrays_of(encoded: Representations) -> dict[str, Any]:
    """The arrays of a binary body."""
    assert encoded.dense is not None
    assert encoded.sparse is not None
    assert encoded.colbert is not None
    return {
        "dense": encoded.dense.astype(np.float16),
        "sparse_indptr": encoded.sparse.indptr,
        "sparse_token_ids": encoded.sparse.token_ids,
        "sparse_weights": encoded.sparse.weights,
        "colbert": encoded.colbert.vectors.astype(np.float16),
        "colbert_offsets": encoded.colbert.offsets,
    }


def single_ms(client: httpx.Client, encoder: Encoder, count: int) -> tuple[float, float]:
    """Median milliseconds of a put of one document, and of encoding it in this process; turns alternate."""
    puts, encodes = [], []
    for number in range(count + 10):
        text = f"{number} {TEXT}"
        started = time.perf_counter()
        body = {"documents": [{"id": f"s{number}", "text": text}]}
        client.put("/collections/single/documents", json=body).raise_for_status()
        between = time.perf_counter()
        encode(encoder, [text])
        if number >= 10:
            puts.append(between - started)
            encodes.append(time.perf_counter() - between)
    return statistics.median(puts) * 1000, statistics.median(encodes) * 1000
