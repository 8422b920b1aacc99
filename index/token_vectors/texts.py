"""Texts whose token vectors lie anywhere in the stores of many segments, for compiled loops over all of them.

Stores of one collection have one codec and one codebook, so what differs is where their arrays lie.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tercet.index.native.kernels import Record, token_spans
from tercet.index.token_vectors.store import TokenVectorStore
from tercet.models.representations import Int64


@dataclass(frozen=True, slots=True)
class StoredTexts:
    """K texts: rows int64[K] of the stores at ordinals int64[K], and their tokens there, from starts up to
    ends, int64[K] both.

    records: of `stores`, S of them.
    """

    stores: Sequence[TokenVectorStore]
    records: tuple[Record, ...]
    ordinals: Int64
    rows: Int64
    starts: Int64
    ends: Int64

    @staticmethod
    def across(stores: Sequence[TokenVectorStore], ordinals: Int64, rows: Int64) -> StoredTexts:
        """Rows int64[K] of the stores at ordinals int64[K]."""
        records = tuple(store.record for store in stores)
        return StoredTexts(stores, records, ordinals, rows, *token_spans(records, ordinals, rows))

    @staticmethod
    def of(store: TokenVectorStore, rows: Int64) -> StoredTexts:
        """Rows int64[K] of one store."""
        return StoredTexts.across([store], np.zeros(len(rows), np.int64), rows)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def tokens(self) -> Int64:
        """How many each has, int64[K]."""
        return self.ends - self.starts

    def part(self, some: slice) -> StoredTexts:
        """Some of them."""
        return replace(
            self,
            ordinals=self.ordinals[some],
            rows=self.rows[some],
            starts=self.starts[some],
            ends=self.ends[some],
        )

    @property
    def of_stores(self) -> tuple[tuple[Record, ...], Int64, Int64, Int64]:
        """Where they lie, as kernels take it."""
        return self.records, self.ordinals, self.starts, self.ends

    @property
    def arguments(self) -> tuple[Any, ...]:
        """What `near_maxsim` and `exact_maxsim` take of them: where they lie, and the codebook."""
        book = self.stores[0].codebook
        return *self.of_stores, *((None, None) if book is None else (book.centroids, book.tables))
