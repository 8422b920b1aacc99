"""Random documents that lie unevenly over shards: equal ones, and terms that one shard has most of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import count

import numpy as np

from tercet.cluster.shards.placement import Placement
from tercet.index.candidates import Document
from tercet.models.representations import Representations
from tests.index.conftest import random_representations

WORDS = ["tea", "train", "water", "rail", "green", "steam", "leaf", "black", "station", "kettle"]


def uneven_corpus(
    size: int, seed: int, shards: int, copies: int = 12
) -> tuple[list[Document], Representations]:
    """So many documents, the first `copies` of equal content. Low token ids are mostly in the first shard."""
    random = np.random.default_rng(seed)
    encoded = random_representations(size, seed).take(np.maximum(np.arange(size) - (copies - 1), 0))
    documents = []
    for row in range(size):
        assert encoded.sparse is not None
        token_ids, _ = encoded.sparse.row(row)
        low = len(token_ids) > 0 and token_ids[0] < 12
        wanted = 0 if low and random.random() < 0.8 else int(random.integers(shards))
        words = random.choice(WORDS, random.integers(1, 9), p=_zipf(len(WORDS)))
        documents.append(
            Document(
                _id_in(wanted, shards, f"d{row}"),
                " ".join(words),
                None if row % 3 else str(random.choice(WORDS)),
                {
                    "year": 2000 + row % 7,
                    "tags": _tags(row),
                    "kind": ["odd", "even"][row % 2] if row % 5 else None,
                    "new": bool(row % 4),
                },
            )
        )
    return [replace(each, metadata=_without_none(each)) for each in documents], encoded


def _id_in(shard: int, shards: int, name: str) -> str:
    """A document's id that belongs to a shard."""
    return next(
        id
        for id in (f"{name}.{number}" for number in count())
        if Placement.evenly(shards).shard_of(id) == shard
    )


def _zipf(size: int) -> Sequence[float]:
    shares = 1 / np.arange(1, size + 1)
    total: Sequence[float] = (shares / shares.sum()).tolist()
    return total


def _tags(number: int) -> list[str]:
    return [tag for tag, divisor in (("two", 2), ("three", 3), ("five", 5)) if number % divisor == 0]


def _without_none(document: Document) -> dict[str, object]:
    return {name: value for name, value in document.metadata.items() if value is not None}
