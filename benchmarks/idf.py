"""What does collection idf add to the time of a search?

The same documents in two collections, one with `lexical: idf`, answer the same queries in turn. First the
lexical side alone over the 200,000 synthetic documents of `sparse.py` in four segments: the snapshot's search
for 10 hits. Then the whole search of a judged collection with the embedded checkpoint, from ready
representations to the answer's JSON, which shows the idf of the query's terms. A query's time is the least of
several passes, a kind's time the mean over queries. Opening, where the idf is computed, is timed too.

Run: python -m benchmarks.idf [FOLDER]   (default: ../shared/data/cranfield, in BEIR's layout)
"""

import argparse
import asyncio
import datetime
import json
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import numpy as np
import orjson

from benchmarks.serving.server import machine
from benchmarks.sparse import DOCUMENTS, VOCABULARY
from benchmarks.sparse import collection as synthetic
from tercet.evaluation.beir import read_dataset
from tercet.index.candidates import CandidateLimits, Document, Weights
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.collection import Collection
from tercet.index.snapshot import Snapshot
from tercet.index.writer import SegmentLimits
from tercet.ingest.target import settings_for
from tercet.models.encoder import Encoder, encode
from tercet.models.loader import load_encoder
from tercet.models.representations import LexicalKind, Representations, SparseRows
from tercet.service.collections import CollectionRegistry
from tercet.service.encoding.service import LocalEncoding
from tercet.service.encoding.shelf import EncoderShelf
from tercet.service.load.pools import Pools
from tercet.service.search.answers import answer_head, answer_hits
from tercet.service.search.pipeline import SearchPipeline
from tercet.service.search.query import SearchQuery

ROOT = Path(__file__).resolve().parent.parent
CRANFIELD = ROOT.parent / "shared" / "data" / "cranfield"
RESULT = ROOT / "benchmarks" / "results" / "idf.json"
KINDS: tuple[LexicalKind, ...] = ("plain", "idf")
SEGMENT = 50_000
PASSES = 15
LIMIT = 1.05  # of the time without idf

Search = Callable[[LexicalKind, Representations], Awaitable[object]]
Figures = dict[str, float]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=CRANFIELD)
    folder: Path = parser.parse_args().folder
    before = machine()
    with tempfile.TemporaryDirectory(prefix="tercet-idf-") as scratch:
        figures = {
            f"the lexical side of {DOCUMENTS:,} synthetic documents": asyncio.run(
                lexical_side(Path(scratch))
            ),
            f"a whole search of {folder.name}": asyncio.run(whole_search(Path(scratch), folder)),
        }
    record = {"date": datetime.datetime.now(datetime.UTC).date().isoformat(), "machine": before, **figures}
    RESULT.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    for question, found in figures.items():
        print(f"{question}: {json.dumps(found)}")
    assert all(found["idf_by_plain"] <= LIMIT for found in figures.values()), f"more than {LIMIT} times"


async def lexical_side(root: Path) -> Figures:
    """The snapshot's search with the lexical side alone."""
    rows, queries = synthetic(np.random.default_rng(0))
    documents = Representations(
        np.ones(len(rows), np.int64), np.zeros(len(rows), np.bool_), np.ones((len(rows), 1), np.float32), rows
    )
    asked = [
        Representations(
            np.ones(1, np.int64),
            np.zeros(1, np.bool_),
            None,
            SparseRows(np.array([0, len(ids)]), ids, weights),
        )
        for ids, weights in queries
    ]
    for kind in KINDS:
        settings = CollectionSettings(
            name=kind,
            encoder="none",
            fingerprint="0",
            dense_dimension=1,
            colbert_dimension=0,
            vocabulary_size=VOCABULARY,
            dense_kind="flat",
            token_codec="none",  # noqa: S106  # a codec of token vectors, no secret
            lexical=kind,
        )
        write(root / "synthetic", settings, [Document(f"d{row}", "") for row in range(len(rows))], documents)
    opened = {kind: opening(root / "synthetic", kind) for kind in KINDS}

    async def search(kind: LexicalKind, query: Representations) -> object:
        snapshot, _ = opened[kind]
        return snapshot.search(query, weights=Weights(0, 1, 0), candidates=CandidateLimits(0, 200))

    return {
        **{f"{kind}_open_ms": round(seconds * 1e3, 1) for kind, (_, seconds) in opened.items()},
        **await compared(search, asked),
    }


async def whole_search(root: Path, folder: Path) -> Figures:
    """The pipeline with all three sides, and its answer as JSON."""
    encoder = load_encoder("minilm-m3")
    dataset = read_dataset(folder)
    documents = encode(encoder, [document.encoded_text for document in dataset.documents])
    queries = encode(encoder, list(dataset.queries.values()), "query")
    for kind in KINDS:
        settings = settings_for(kind, encoder.info, {"lexical": kind})
        write(root / "real", settings, dataset.documents, documents)
    return await through_the_pipeline(root / "real", encoder, queries)


async def through_the_pipeline(root: Path, encoder: Encoder, queries: Representations) -> Figures:
    encoding = LocalEncoding(encoder, batch_tokens=2048, queue_tokens=131_072)
    pools, collections = Pools.open(), CollectionRegistry(root)
    pipeline = SearchPipeline(EncoderShelf(encoding), collections, pools.search)

    async def search(kind: LexicalKind, query: Representations) -> object:
        outcome = await pipeline.search(SearchQuery(kind, query))
        return orjson.dumps({**answer_head(outcome), "hits": list(answer_hits(outcome))})

    try:
        return await compared(search, [queries.take(np.array([row])) for row in range(len(queries))])
    finally:
        await encoding.close()
        collections.close()
        pools.close()


def write(
    root: Path, settings: CollectionSettings, documents: Sequence[Document], encoded: Representations
) -> None:
    """Publishes a collection of these documents."""
    with Collection.create(root, settings.name, settings).writer(SegmentLimits(documents=SEGMENT)) as writer:
        writer.add(documents, encoded)
        writer.publish()


def opening(root: Path, name: str) -> tuple[Snapshot, float]:
    """A collection's snapshot, and the seconds that opening it takes once its files are in memory."""
    collection = Collection.open(root, name)
    collection.snapshot()
    started = time.perf_counter()
    return collection.snapshot(), time.perf_counter() - started


async def compared(search: Search, queries: Sequence[Representations]) -> Figures:
    """Mean milliseconds of a search of each kind, and their ratio."""
    seconds = np.full((len(KINDS), len(queries)), np.inf)
    for number in range(PASSES + 1):
        for place, query in enumerate(queries):
            for row in (0, 1) if (number + place) % 2 else (1, 0):
                started = time.perf_counter()
                await search(KINDS[row], query)
                took = time.perf_counter() - started
                if number:  # the first pass compiles and warms up
                    seconds[row, place] = min(seconds[row, place], took)
    plain, idf = seconds.mean(axis=1).tolist()
    return {
        "queries": len(queries),
        "plain_ms": round(plain * 1e3, 4),
        "idf_ms": round(idf * 1e3, 4),
        "idf_by_plain": round(idf / plain, 4),
    }


if __name__ == "__main__":
    main()
