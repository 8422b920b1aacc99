"""How many queries a second does one request with several of them answer, beside requests of one each?

A server over the abstracts of Cranfield, and its queries: as texts, and as ready representations, which need
no encoder. One connection that sends one query after the other, eight that do so at a time, and one that
sends batches. Rounds of all alternate; the figures are medians, the ratios those of the rounds.

Run: python -m benchmarks.query_batches [--rounds 5]
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx

from benchmarks.recording import dated, write
from benchmarks.serving.cranfield import build, texts_of
from benchmarks.serving.server import serving
from tercet.models.loader import load_encoder

CONNECTIONS, BATCH, QUERIES = 8, 32, 192

Ask = Callable[[list[Any]], None]


def main() -> None:
    """Prints a table and writes the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--no-record", action="store_true", help="leave the committed figures as they are")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tercet-batches-") as scratch:
        figures = measured(Path(scratch), arguments.rounds)
    for kind, found in figures.items():
        for name, value in found.items():
            print(f"{kind:>16}  {name:<28} {value:>8}")
    if not arguments.no_record:
        write("query_batches", dated(figures))


def measured(data: Path, rounds: int) -> dict[str, dict[str, float]]:
    """Queries a second of each way to ask, by kind of query."""
    name = build(data / "collections", load_encoder("minilm-m3"), texts_of("corpus"), 1_000)[0]
    with serving(data) as server, httpx.Client(base_url=server.url, timeout=60) as http:
        texts = texts_of("queries")[:QUERIES]
        embedded = http.post(
            "/embed", json={"inputs": texts, "input_type": "query", "encoding": "base64"}
        ).raise_for_status()
        kinds = {"texts": texts, "representations": embedded.json()["embeddings"]}
        return {kind: _rates(http, name, queries, rounds) for kind, queries in kinds.items()}


def _rates(http: httpx.Client, name: str, queries: list[Any], rounds: int) -> dict[str, float]:
    def ask(body: dict[str, Any]) -> None:
        http.post("/search", json={"collection": name, **body}).raise_for_status()

    def alone(some: list[Any]) -> None:
        for query in some:
            ask({"query": query})

    def at_a_time(some: list[Any]) -> None:
        with ThreadPoolExecutor(CONNECTIONS) as threads:
            list(threads.map(lambda query: ask({"query": query}), some))

    def batches(some: list[Any]) -> None:
        for first in range(0, len(some), BATCH):
            ask({"queries": some[first : first + BATCH]})

    ways: dict[str, Ask] = {
        "one": alone,
        f"{CONNECTIONS}_at_a_time": at_a_time,
        f"batches_of_{BATCH}": batches,
    }
    rates: dict[str, list[float]] = {way: [] for way in ways}
    for call in ways.values():
        call(queries[:BATCH])
    for _ in range(rounds):
        for each, call in ways.items():
            started = time.perf_counter()
            call(queries)
            rates[each].append(len(queries) / (time.perf_counter() - started))
    figures = {f"{each}_a_second": round(statistics.median(found), 1) for each, found in rates.items()}
    together = rates[f"batches_of_{BATCH}"]
    for way in ("one", f"{CONNECTIONS}_at_a_time"):
        ratios = [mine / theirs for mine, theirs in zip(together, rates[way], strict=True)]
        figures[f"batches_to_{way}"] = round(statistics.median(ratios), 2)
    return figures


if __name__ == "__main__":
    main()
