"""A live collection of Tercet, with the sides that the peers have."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from commands import DIMENSION, TERMS, VOCABULARY, dense, main, sparse

from tercet.index.candidates import CandidateLimits, Document, Weights
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.collection import Collection
from tercet.index.errors import CollectionNotFoundError
from tercet.index.live.collection import LiveCollection
from tercet.models.representations import Representations, SparseRows

NAME = "peer"
SETTINGS = CollectionSettings(
    NAME,
    "made up",
    "0" * 64,
    DIMENSION,
    0,
    VOCABULARY,
    dense_kind="flat",
    token_codec="none",  # noqa: S106
)
DENSE, DENSE_ALONE = Weights(1, 0, 0), CandidateLimits(1, 0, 0)


class Tercet:
    """A collection with an exact dense side and an inverted index."""

    def __init__(self, folder: Path) -> None:
        try:
            collection = Collection.open(folder, NAME)
        except CollectionNotFoundError:
            collection = Collection.create(folder, NAME, SETTINGS)
        self._live = LiveCollection(collection).__enter__()

    def put(self, numbers: Sequence[int]) -> None:
        documents = [Document(str(number), "") for number in numbers]
        self._live.put(documents, representations(numbers))

    def delete(self, number: int) -> None:
        self._live.delete([str(number)])

    def nearest(self, number: int) -> int | None:
        query = representations([number])
        hits = self._live.snapshot().search(query, top_k=1, weights=DENSE, candidates=DENSE_ALONE).hits
        return int(hits[0].document.id) if hits else None


def representations(numbers: Sequence[int]) -> Representations:
    """Those of some documents."""
    count, rows = len(numbers), [sparse(number) for number in numbers]
    return Representations(
        np.full(count, TERMS, np.int64),
        np.zeros(count, np.bool_),
        np.stack([dense(number) for number in numbers]),
        SparseRows(
            np.arange(count + 1) * TERMS,
            np.concatenate([terms for terms, _ in rows]),
            np.concatenate([weights for _, weights in rows]),
        ),
        None,
    )


if __name__ == "__main__":
    main(Tercet)
