"""How fast does `tercet-client` stream ready documents, beside bare requests, and in how much memory?

One server, two collections. Stretches of 10,000 documents alternate: `upsert` of the client, which is given
documents and arrays and packs them itself, several requests at a time; and the loop of `benchmarks/live.py`,
which sends prepared bodies of the same bytes one after the other, and counts the requests alone. The memory
of their process is read after each stretch; it grew by as much as its median in the
second half is above that in the first.

Run: PYTHONPATH=clients/python/src python -m benchmarks.client_stream [--documents 100000] [--work FOLDER]
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import psutil
from safetensors.numpy import save
from tercet_client import Client, EmbeddedDocuments, Embeddings, upsert

from benchmarks.recording import dated, machine, write
from benchmarks.serving.server import serving
from benchmarks.writes.documents import TEXT, Batches
from benchmarks.writes.http import BINARY, arrays_of
from tercet.models.loader import load_encoder

BATCH, STRETCH, PREPARED = 100, 10_000, 8
SHARE = 0.8
GROWTH_BYTES = 16 * 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--work", type=Path, default=Path(), help="where collections are written")
    asked = parser.parse_args()
    before = machine()
    with tempfile.TemporaryDirectory(dir=asked.work.resolve(), prefix="stream-") as work:
        figures = measured(Path(work), asked.documents)
    print(json.dumps(figures, indent=2))
    write("client_stream", dated(figures, before))
    assert figures["share"] >= SHARE, f"{figures['share']} of the bare rate, not {SHARE}"
    assert figures["memory_grew_mib"] * 2**20 <= GROWTH_BYTES, "the client's memory grew"


def measured(work: Path, documents: int) -> dict[str, Any]:
    """Rates of both, stretch by stretch, and the client's memory."""
    fingerprint = load_encoder("minilm-m3").info.fingerprint
    batches = Batches(BATCH)
    parts = [arrays_of(batches.of(number)[1]) for number in range(PREPARED)]
    own, bare, memory = [], [], []
    process = psutil.Process()
    with (
        serving(work) as server,
        httpx.Client(base_url=server.url, timeout=60) as http,
        Client(server.url) as client,
    ):
        for name in ("bare", "client", "warm"):
            client.create_collection(name)
        upsert(client, "warm", islice(items(fingerprint, parts, 0), 4))
        bare_rate(http, "warm", fingerprint, parts, 0, 2 * BATCH)
        for first in range(0, documents, STRETCH):
            numbers = range(first // BATCH, (first + STRETCH) // BATCH)
            bare.append(bare_rate(http, "bare", fingerprint, parts, first, STRETCH))
            started = time.perf_counter()
            stream = islice(items(fingerprint, parts, numbers.start), len(numbers))
            done = upsert(client, "client", stream)
            own.append(STRETCH / (time.perf_counter() - started))
            assert done.documents == STRETCH
            memory.append(process.memory_info().rss)
        assert client.collection("client").description["documents"] == documents
    earlier, later = (
        statistics.median(half) for half in (memory[: len(memory) // 2], memory[len(memory) // 2 :])
    )
    return {
        "documents": documents,
        "client_documents_a_second": round(documents / sum(STRETCH / rate for rate in own)),
        "bare_documents_a_second": round(documents / sum(STRETCH / rate for rate in bare)),
        "share": round(statistics.median(mine / theirs for mine, theirs in zip(own, bare, strict=True)), 3),
        "shares": [round(mine / theirs, 3) for mine, theirs in zip(own, bare, strict=True)],
        "memory_mib": [round(size / 2**20, 1) for size in memory],
        "memory_grew_mib": round((later - earlier) / 2**20, 1),
    }


def items(fingerprint: str, parts: list[dict[str, Any]], number: int) -> Iterator[EmbeddedDocuments]:
    """Batches of the client, from this number on."""
    while True:
        arrays = parts[number % len(parts)]
        embeddings = Embeddings(
            "minilm-m3", fingerprint, np.zeros(BATCH, np.int64), np.zeros(BATCH, np.bool_), **arrays
        )
        yield EmbeddedDocuments(
            [{"id": f"d{number * BATCH + place:08d}", "text": TEXT} for place in range(BATCH)], embeddings
        )
        number += 1


def bare_rate(
    http: httpx.Client, name: str, fingerprint: str, parts: list[dict[str, Any]], first: int, documents: int
) -> float:
    """Documents a second of prepared bodies, sent one after the other."""
    seconds = 0.0
    for number in range(first // BATCH, (first + documents) // BATCH):
        ids = range(number * BATCH, (number + 1) * BATCH)
        lines = "\n".join(json.dumps({"id": f"d{each:08d}", "text": TEXT}) for each in ids)
        arrays = {**parts[number % len(parts)], "documents": np.frombuffer(lines.encode(), np.uint8)}
        body = save(arrays, {"fingerprint": fingerprint})
        started = time.perf_counter()
        http.put(f"/collections/{name}/documents", content=body, headers=BINARY).raise_for_status()
        seconds += time.perf_counter() - started
    return documents / seconds


if __name__ == "__main__":
    main()
