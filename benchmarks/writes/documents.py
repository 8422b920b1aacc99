"""Ready documents with made-up representations, and a collection for them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from tercet.index.candidates import Document
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.collection import Collection
from tercet.models.representations import Float32, Representations, SparseRows, TokenVectors

DENSE, TERMS, TOKENS, COLBERT, VOCABULARY = 384, 100, 60, 128, 30_522
TEXT = "some words of a passage that was written to be found again " * 5
POOL = 4096  # documents that are made; others are these, turned
FINGERPRINT = "made-up"


def representations(count: int, seed: int) -> Representations:
    """Of `count` documents: unit vectors, and terms of which some are common and most are rare."""
    random = np.random.default_rng(seed)
    dense = _unit(random.standard_normal((count, DENSE), np.float32))
    skewed = np.arange(1, VOCABULARY + 1) ** -0.8
    chances = skewed / skewed.sum()
    terms = [np.sort(random.choice(VOCABULARY, TERMS, replace=False, p=chances)) for _ in range(count)]
    sparse = SparseRows(
        np.arange(count + 1, dtype=np.int64) * TERMS,
        np.concatenate(terms).astype(np.int32),
        random.random(count * TERMS).astype(np.float32) + np.float32(0.01),
    )
    vectors = _unit(random.standard_normal((count * TOKENS, COLBERT), np.float32))
    colbert = TokenVectors(vectors, np.arange(count + 1, dtype=np.int64) * TOKENS)
    return Representations(np.full(count, TOKENS), np.zeros(count, np.bool_), dense, sparse, colbert)


def _unit(vectors: Float32) -> Float32:
    unit: Float32 = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit


class Batches:
    """Batches of documents with ids and representations of their own, but for token vectors.

    What is made takes time, so past the first `POOL` documents dense vectors are those of the first with
    their dimensions rotated, and lexical weights are scaled. Equal ones would tie with each other.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        made = representations(max(1, POOL // size) * size, 0)
        self._made = [made.take(np.arange(size) + first) for first in range(0, len(made), size)]

    def of(self, number: int) -> tuple[list[Document], Representations]:
        """The batch of this number, below 384 pools: documents of ids that no other batch has."""
        first = number * self._size
        documents = [Document(f"d{first + place:08d}", TEXT) for place in range(self._size)]
        turn, place = divmod(number, len(self._made))
        made = self._made[place]
        assert made.dense is not None
        assert made.sparse is not None
        sparse = replace(made.sparse, weights=made.sparse.weights * np.float32(1 - turn / 1024))
        return documents, replace(made, dense=np.roll(made.dense, turn, axis=1), sparse=sparse)

    def upto(self, documents: int) -> Iterator[tuple[list[Document], Representations]]:
        """Batches of so many documents together."""
        return map(self.of, range(documents // self._size))


def collection(root: Path, name: str = "live", **settings: object) -> Collection:
    """An empty collection for them."""
    values = {"lexical": "idf", **settings}
    made = CollectionSettings(name, "made up", FINGERPRINT, DENSE, COLBERT, VOCABULARY, **values)  # type: ignore[arg-type]
    root.mkdir(parents=True, exist_ok=True)
    return Collection.create(root, name, made)


def queries(count: int) -> list[Representations]:
    """Made as documents are, with fewer terms and token vectors, as a query has."""
    found = representations(count, 1000)
    assert found.sparse is not None
    assert found.colbert is not None
    made = []
    for row in range(count):
        one = found.take(np.array([row])) if count > 1 else found
        assert one.dense is not None
        assert one.sparse is not None
        assert one.colbert is not None
        terms = np.arange(0, TERMS, 12)
        sparse = SparseRows(np.array([0, len(terms)]), one.sparse.token_ids[terms], one.sparse.weights[terms])
        colbert = TokenVectors(one.colbert.vectors[:10], np.array([0, 10]))
        made.append(Representations(np.array([10]), np.zeros(1, np.bool_), one.dense, sparse, colbert))
    return made


def bytes_written() -> int:
    """What this process has had written to disks so far, as Linux counts it."""
    lines = Path(f"/proc/{os.getpid()}/io").read_text().splitlines()
    return int(dict(line.split(": ") for line in lines)["write_bytes"])
