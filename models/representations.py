"""The records that travel between encoder, index and service: NumPy arrays only.

Letters in shapes: B texts, L tokens of one text, D dense dimension, C ColBERT dimension.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

Output = Literal["dense", "sparse", "colbert"]
OUTPUTS: tuple[Output, ...] = get_args(Output)
InputType = Literal["query", "document"]
LexicalKind = Literal["plain", "idf"]
"""What a collection does with a query's lexical weights: takes them as they are, or times its idf."""

Float32 = npt.NDArray[np.float32]
Float64 = npt.NDArray[np.float64]
Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Bool = npt.NDArray[np.bool_]


class Shape:
    """The sizes of an array in a record, one for each dimension: a number, None for any, or a letter, which
    is the same number in all of the record. `Annotated[Float64, Shape("N", 3)]` is float64[N, 3].
    """

    def __init__(self, *sizes: str | int | None) -> None:
        self.sizes = sizes


# How far the length of a unit vector may be from 1: float16 and 8-bit codes are nearer by far.
UNIT_ERROR = 0.01


@cache  # a few encoders and collections
def sides_of(dense_dimension: int, vocabulary_size: int, colbert_dimension: int) -> tuple[Output, ...]:
    """The outputs that an encoder gives or a collection has, by their sizes: 0 is that of one it lacks."""
    sizes = (dense_dimension, vocabulary_size, colbert_dimension)
    return tuple(side for side, size in zip(OUTPUTS, sizes, strict=True) if size)


def ragged_positions(offsets: Int64, rows: Int64) -> Int64:
    """Positions, in a packed array with `offsets` int64[B+1], of all items of `rows`, row by row.

    Returns int64[sum of the rows' lengths].
    """
    lengths = offsets[rows + 1] - offsets[rows]
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    positions: Int64 = np.repeat(offsets[rows] - (ends - lengths), lengths)
    return positions + np.arange(total, dtype=np.int64)


def offsets_of(lengths: npt.NDArray[np.integer]) -> Int64:
    """Offsets int64[B+1] of packed rows with these lengths [B]."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def lengths_of(offsets: Int64) -> Int64:
    """Lengths int64[B] of packed rows with these offsets [B+1]. NumPy's `diff` takes three times as long."""
    lengths: Int64 = offsets[1:] - offsets[:-1]
    return lengths


@dataclass(frozen=True, slots=True)
class TokenBatch:
    """Token ids of B texts, packed, special tokens included.

    token_ids: int32[ΣL]; offsets: int64[B+1]; truncated: bool[B], true where the text was longer; queries:
    bool[B], true for queries, which some encoders treat otherwise than documents; None where there are none;
    unattended: int64[B], how many of a text's last tokens the others do not see, though they see all others:
    attention is not the same for all of these; None where there are none. second_starts: int64[B], of texts
    that are two read as one the first token of the second; None where there are none.
    """

    token_ids: Int32
    offsets: Int64
    truncated: Bool
    queries: Bool | None = None
    unattended: Int64 | None = None
    second_starts: Int64 | None = None

    def __len__(self) -> int:
        return len(self.truncated)

    @property
    def lengths(self) -> Int64:
        """Tokens of each text, int64[B]."""
        return lengths_of(self.offsets)

    def take(self, rows: Int64) -> TokenBatch:
        """The given texts, in the given order."""
        if len(self) == len(rows) == 1:  # a query: nothing to choose
            return self
        return TokenBatch(
            self.token_ids[ragged_positions(self.offsets, rows)],
            offsets_of(self.lengths[rows]),
            self.truncated[rows],
            None if self.queries is None else self.queries[rows],
            None if self.unattended is None else self.unattended[rows],
            None if self.second_starts is None else self.second_starts[rows],
        )

    @property
    def is_query(self) -> Bool:
        """Which texts are queries, bool[B]."""
        return np.zeros(len(self), np.bool_) if self.queries is None else self.queries

    def padded(self, pad_id: int) -> tuple[Int64, Int64]:
        """Token ids and the mask of attention, int64[B, L] each, padded on the right to the longest text.

        The mask is 0 on padding, and on tokens that the others do not see.
        """
        lengths = self.lengths
        position = np.arange(int(lengths.max(initial=0)))
        mask = position < lengths[:, None]
        ids = np.full(mask.shape, pad_id, np.int64)
        ids[mask] = self.token_ids
        if self.unattended is not None:
            mask = position < (lengths - self.unattended)[:, None]
        return ids, mask.astype(np.int64)

    @staticmethod
    def concatenate(batches: Sequence[TokenBatch]) -> TokenBatch:
        """One batch with the texts of all, in order; either all of them are pairs, or none."""
        if len(batches) == 1:
            return batches[0]
        second_starts = [b.second_starts for b in batches if b.second_starts is not None]
        return TokenBatch(
            np.concatenate([b.token_ids for b in batches]),
            offsets_of(np.concatenate([b.lengths for b in batches])),
            np.concatenate([b.truncated for b in batches]),
            np.concatenate([b.is_query for b in batches]),
            None
            if all(b.unattended is None for b in batches)
            else np.concatenate(
                [np.zeros(len(b), np.int64) if b.unattended is None else b.unattended for b in batches]
            ),
            np.concatenate(second_starts) if second_starts else None,
        )


@dataclass(frozen=True, slots=True)
class SparseRows:
    """Lexical weights of B texts as CSR; token ids ascend within a row, weights are above 0.

    indptr: int64[B+1]; token_ids: int32[nnz]; weights: float32[nnz].
    """

    indptr: Int64
    token_ids: Int32
    weights: Float32

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def row(self, row: int) -> tuple[Int32, Float32]:
        """Token ids and weights of one text."""
        span = slice(int(self.indptr[row]), int(self.indptr[row + 1]))
        return self.token_ids[span], self.weights[span]

    def take(self, rows: Int64) -> SparseRows:
        """The given rows, in the given order."""
        positions = ragged_positions(self.indptr, rows)
        lengths = self.indptr[rows + 1] - self.indptr[rows]
        return SparseRows(offsets_of(lengths), self.token_ids[positions], self.weights[positions])

    @staticmethod
    def concatenate(parts: Sequence[SparseRows]) -> SparseRows:
        """One record with the rows of all, in order."""
        return SparseRows(
            offsets_of(np.concatenate([lengths_of(p.indptr) for p in parts])),
            np.concatenate([p.token_ids for p in parts]),
            np.concatenate([p.weights for p in parts]),
        )


@dataclass(frozen=True, slots=True)
class TokenVectors:
    """ColBERT vectors of B texts, packed. vectors: float32[ΣL, C]; offsets: int64[B+1]."""

    vectors: Float32
    offsets: Int64

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def row(self, row: int) -> Float32:
        """Token vectors of one text, float32[L, C]."""
        return self.vectors[int(self.offsets[row]) : int(self.offsets[row + 1])]

    def take(self, rows: Int64) -> TokenVectors:
        """The given rows, in the given order."""
        lengths = self.offsets[rows + 1] - self.offsets[rows]
        return TokenVectors(self.vectors[ragged_positions(self.offsets, rows)], offsets_of(lengths))

    @staticmethod
    def concatenate(parts: Sequence[TokenVectors]) -> TokenVectors:
        """One record with the rows of all, in order."""
        return TokenVectors(
            np.concatenate([p.vectors for p in parts]),
            offsets_of(np.concatenate([lengths_of(p.offsets) for p in parts])),
        )


@dataclass(frozen=True, slots=True)
class Route:
    """What a router chose for a text: adapters, None for the base, and the weight of each.

    Weights are at least 0 and sum to 1; a hard choice is one adapter of weight 1.
    """

    adapters: tuple[str | None, ...]
    weights: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Representations:
    """What one encoder pass gives for B texts; an output that was not asked for, or that the encoder lacks,
    is None.

    dense: float32[B, D], unit length; tokens: int64[B], tokens encoded of each text, special tokens
    included; truncated: bool[B]; routes: of each text that a router chose for, None for others and, as a
    whole, where there are none.
    """

    tokens: Int64
    truncated: Bool
    dense: Float32 | None = field(default=None)
    sparse: SparseRows | None = field(default=None)
    colbert: TokenVectors | None = field(default=None)
    routes: tuple[Route | None, ...] | None = field(default=None)

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def size_bytes(self) -> int:
        """Bytes of all arrays."""
        arrays: list[npt.NDArray[Any]] = [self.tokens, self.truncated]
        if self.dense is not None:
            arrays.append(self.dense)
        if self.sparse is not None:
            arrays += [self.sparse.indptr, self.sparse.token_ids, self.sparse.weights]
        if self.colbert is not None:
            arrays += [self.colbert.vectors, self.colbert.offsets]
        return sum(array.nbytes for array in arrays)

    def take(self, rows: Int64) -> Representations:
        """The given texts, in the given order."""
        if len(self) == len(rows) == 1:  # a query: nothing to choose
            return self
        return Representations(
            self.tokens[rows],
            self.truncated[rows],
            None if self.dense is None else self.dense[rows],
            None if self.sparse is None else self.sparse.take(rows),
            None if self.colbert is None else self.colbert.take(rows),
            None if self.routes is None else tuple(self.routes[row] for row in rows.tolist()),
        )

    def in_order(self, rows: Int64) -> Representations:
        """The texts by the rows int64[B] that they have; nothing is copied where they are in that order."""
        return self if (rows[1:] > rows[:-1]).all() else self.take(np.argsort(rows))

    def keep(self, outputs: Sequence[Output]) -> Representations:
        """Representations of these texts with only some outputs."""
        return Representations(
            self.tokens,
            self.truncated,
            self.dense if "dense" in outputs else None,
            self.sparse if "sparse" in outputs else None,
            self.colbert if "colbert" in outputs else None,
            self.routes,
        )

    def with_dimensions(self, dimensions: int) -> Representations:
        """Dense vectors cut to their first `dimensions` values and normalized again.

        Equal to cutting before the first normalization, since that only scales a vector.
        """
        if self.dense is None:
            return self
        cut = self.dense[:, :dimensions]
        norms = np.linalg.norm(cut, axis=1, keepdims=True)
        return Representations(
            self.tokens,
            self.truncated,
            cut / np.maximum(norms, np.float32(1e-12)),
            self.sparse,
            self.colbert,
            self.routes,
        )

    @staticmethod
    def concatenate(parts: Sequence[Representations]) -> Representations:
        """One record with the texts of all, in order; all parts hold the same outputs."""
        if len(parts) == 1:
            return parts[0]
        dense = [p.dense for p in parts if p.dense is not None]
        sparse = [p.sparse for p in parts if p.sparse is not None]
        colbert = [p.colbert for p in parts if p.colbert is not None]
        routes = tuple(route for p in parts for route in p.routes or (None,) * len(p))
        return Representations(
            np.concatenate([p.tokens for p in parts]),
            np.concatenate([p.truncated for p in parts]),
            np.concatenate(dense) if dense else None,
            SparseRows.concatenate(sparse) if sparse else None,
            TokenVectors.concatenate(colbert) if colbert else None,
            routes if any(routes) else None,
        )
