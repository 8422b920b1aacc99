"""Texts whose token vectors lie anywhere in the stores of many segments, for compiled loops over all of them.

Stores of one collection have one codec and one codebook, so what differs is where their arrays lie.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from index.compiled import compiled
from index.files.addresses import AHEAD, array_at, bring_near
from index.files.arrays import frozen
from index.token_vectors.store import STORE, TokenVectorStore
from models.representations import Int64

Array = npt.NDArray[Any]

CENTROID_BYTES, SCALE_BYTES = 2, 4

_NO_CODEBOOK = (frozen(np.empty((0, 0), np.uint64)), frozen(np.empty((0, 0), np.uint64)))


@dataclass(frozen=True, slots=True)
class StoredTexts:
    """K texts: rows int64[K] of the stores at places int64[K], and their tokens there, from starts up to
    ends, int64[K] both.

    table: STORE[S], where each store's arrays lie.
    """

    stores: Sequence[TokenVectorStore]
    table: npt.NDArray[np.void]
    places: Int64
    rows: Int64
    starts: Int64
    ends: Int64

    @staticmethod
    def across(stores: Sequence[TokenVectorStore], places: Int64, rows: Int64) -> StoredTexts:
        """Rows int64[K] of the stores at places int64[K]."""
        table = frozen(np.concatenate([store.record for store in stores]).view(STORE))
        starts, ends = _spans(table, frozen(places), frozen(rows))
        return StoredTexts(stores, table, frozen(places), frozen(rows), frozen(starts), frozen(ends))

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
            places=self.places[some],
            rows=self.rows[some],
            starts=self.starts[some],
            ends=self.ends[some],
        )

    @property
    def arguments(self) -> tuple[Any, Any]:
        """What compiled loops take: where all is stored, with the codebook's words, and the K texts."""
        store = self.stores[0]
        words = _NO_CODEBOOK if store.codebook is None else store.codebook.words
        return (self.table, store.codes.shape[1], *words), (self.places, self.starts, self.ends)


@compiled(nogil=True)
def tokens_of_text(stored: Any, texts: Any, number: int) -> Any:
    """One text's codes uint8[L, B], scales float32[L], or float32[0] where the codes are of a codebook, then
    centroids' numbers uint16[L], or uint16[0]; and the codebook's words.
    """
    table, size, centroids, tables = stored
    places, starts, ends = texts
    store, start, count = table[places[number]], starts[number], ends[number] - starts[number]
    codes = array_at(store.codes + size * start, (count, size), np.uint8)
    scales = array_at(store.scales + SCALE_BYTES * start, count if store.scales else 0, np.float32)
    assigned = array_at(store.centroids + CENTROID_BYTES * start, count if store.centroids else 0, np.uint16)
    return codes, scales, assigned, centroids, tables


@compiled(nogil=True)
def bring_codes_near(stored: Any, texts: Any, number: int) -> None:
    """Asks for one text's codes ahead."""
    table, size = stored[0], stored[1]
    places, starts, ends = texts
    bring_near(table[places[number]].codes + size * starts[number], size * (ends[number] - starts[number]))


@compiled(nogil=True)
def centroids_of_text(stored: Any, texts: Any, number: int) -> Any:
    """One text's centroids' numbers uint16[L]; asks for those of a later text ahead."""
    table, (places, starts, ends) = stored[0], texts
    ahead = min(number + AHEAD, len(starts) - 1)
    later = table[places[ahead]].centroids + CENTROID_BYTES * starts[ahead]
    bring_near(later, CENTROID_BYTES * (ends[ahead] - starts[ahead]))
    here = table[places[number]].centroids + CENTROID_BYTES * starts[number]
    return array_at(here, ends[number] - starts[number], np.uint16)


@compiled(nogil=True)
def _spans(table: Array, places: Array, rows: Array) -> tuple[Array, Array]:
    """Where the tokens of texts begin and end."""
    starts, ends = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64)
    for number in range(len(rows)):
        offsets = array_at(table[places[number]].offsets, rows[number] + 2, np.int64)
        starts[number], ends[number] = offsets[rows[number]], offsets[rows[number] + 1]
    return starts, ends
