"""Compiles the loops of builds, writes and searches, or loads those that are compiled already.

Numba compiles a function at its first call and keeps it on the disk for later processes: half a minute for
all of them. So that no first search waits for that, small collections are used here as users will use
theirs. Token vectors are stored as builds store them by default, and as collections that begin empty do.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from index.candidates import Document, Weights
from index.catalog.settings import CollectionSettings
from index.collection import Collection
from index.dense.kinds import SMALLEST_INDEX
from index.documents.filters import parse_filter
from index.live.collection import LiveCollection
from index.snapshot import Snapshot
from index.token_vectors.codebook_training import train_codebook
from models.representations import Float32, Representations, SparseRows, TokenVectors

DENSE, COLBERT, TOKENS = 8, 16, 3  # dimensions, and token vectors of a text
VOCABULARY, FEW_TERMS = 128, 4  # queries of few terms and of many have loops of their own
TEXT = "warm up"
FILTER = {"or": [{"eq": {"kind": "a"}}, {"gte": {"number": 1}}]}


@cache
def warm_up() -> None:
    """Builds, writes and searches in a folder for temporary files, once in a process.

    Raises OSError or SearchIndexError where that folder has no room; the next call tries again.
    """
    random = np.random.default_rng(0)
    with tempfile.TemporaryDirectory(prefix="tercet-warm-up-") as folder:
        _use(Path(folder), "scanned", random, 2, {})
        codebook = train_codebook(_unit(random, SMALLEST_INDEX * TOKENS, COLBERT), 1)
        chosen = {"dense_kind": "hnsw", "token_codec": "residual1", "codebook": codebook}
        _use(Path(folder), "in-a-graph", random, SMALLEST_INDEX, chosen)


def _use(
    folder: Path, name: str, random: np.random.Generator, documents: int, chosen: Mapping[str, Any]
) -> None:
    """Builds a collection of so many documents, writes to it, and searches."""
    settings = CollectionSettings(
        name=name,
        encoder="none",
        fingerprint="none",
        dense_dimension=DENSE,
        colbert_dimension=COLBERT,
        vocabulary_size=VOCABULARY,
        lexical="idf",
        bm25=True,
        fields={"kind": "keyword", "number": "integer"},
        **chosen,
    )
    collection = Collection.create(folder, name, settings)
    with collection.writer() as writer:
        writer.add([_document(f"built-{number}") for number in range(documents)], _texts(random, documents))
        writer.publish()
    query, long_query = _texts(random, 1), _texts(random, 1, VOCABULARY)
    built = collection.snapshot()
    _search(built, query)
    built.search(long_query, top_k=1)
    built.search(built.stored_query("built-0").representations, top_k=1)
    built.explain(query, "built-0", TEXT)
    built.score_all(query)
    with LiveCollection(collection) as live:
        live.put([_document(id) for id in ("built-1", "written")], _texts(random, 2))
        _search(live.snapshot(), query)
        live.patch("written", {"number": 2})
        live.flush()
        live.put([_document("later")], _texts(random, 1))
        live.delete(["built-0"])
        live.flush()
        live.merge()
        _search(live.snapshot(), query)


def _search(snapshot: Snapshot, query: Representations) -> None:
    snapshot.search(query, top_k=1)
    snapshot.search(query, text=TEXT, top_k=1, weights=Weights(bm25=1), filter=parse_filter(FILTER))
    snapshot.search(query, top_k=1, group_by="kind")
    snapshot.facets({"kind": 1})
    snapshot.page(None, 1)


def _document(id: str) -> Document:
    return Document(id, TEXT, metadata={"kind": "a", "number": 1})


def _texts(random: np.random.Generator, count: int, terms: int = FEW_TERMS) -> Representations:
    ids = np.sort(random.permuted(np.tile(np.arange(VOCABULARY), (count, 1)), axis=1)[:, :terms])
    return Representations(
        np.full(count, TOKENS + 1),
        np.zeros(count, np.bool_),
        _unit(random, count, DENSE),
        SparseRows(terms * np.arange(count + 1), ids.astype(np.int32).ravel(), np.ones(ids.size, np.float32)),
        TokenVectors(_unit(random, count * TOKENS, COLBERT), TOKENS * np.arange(count + 1)),
    )


def _unit(random: np.random.Generator, count: int, dimension: int) -> Float32:
    vectors = random.standard_normal((count, dimension), np.float32)
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), np.float32)
