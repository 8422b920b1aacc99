"""One search of a snapshot that nobody has searched yet: what is loaded and counted once, is then."""

from __future__ import annotations

import numpy as np

from tercet.index.candidates import Weights
from tercet.index.search.snapshot_query import SnapshotQuery
from tercet.index.snapshot import Snapshot
from tercet.models.representations import Float32, Representations, SparseRows, TokenVectors, offsets_of

TERMS = 16
TOKENS = 8
TEXT = "warm up"


def warm(snapshot: Snapshot) -> None:
    """Searches all sides once, with a query that means nothing."""
    settings = snapshot.settings
    generator = np.random.default_rng(0)

    def unit_vectors(rows: int, dimension: int) -> Float32:
        vectors: Float32 = generator.normal(size=(rows, dimension)).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors

    terms = np.arange(min(TERMS, settings.vocabulary_size), dtype=np.int32)
    sides = settings.encoder_sides
    query = Representations(
        np.array([TOKENS], np.int64),
        np.zeros(1, np.bool_),
        unit_vectors(1, settings.dense_dimension) if "dense" in sides else None,
        SparseRows(offsets_of(np.array([len(terms)])), terms, np.ones(len(terms), np.float32))
        if "sparse" in sides
        else None,
        TokenVectors(unit_vectors(TOKENS, settings.colbert_dimension), offsets_of(np.array([TOKENS])))
        if "colbert" in sides
        else None,
    )
    weights = Weights(bm25=float(settings.bm25)).of(sides)
    snapshot.answer(SnapshotQuery(query, TEXT, weights=weights))
