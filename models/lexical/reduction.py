"""Token weights to sparse rows: the maximum per token id."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

import numpy as np

from tercet.models.representations import Float32, Int32, Int64, SparseRows, lengths_of, offsets_of


def reduce_sparse(
    token_ids: Int32, weights: Float32, offsets: Int64, special_ids: AbstractSet[int]
) -> SparseRows:
    """Largest weight of each token id in each text; special ids and weights not above 0 are dropped.

    token_ids: int32[ΣL]; weights: float32[ΣL]; offsets: int64[B+1]. Ids ascend within a row.
    """
    dropped = np.fromiter(special_ids, np.int32, len(special_ids))
    kept = np.flatnonzero((weights > 0) & (token_ids[:, None] != dropped).all(axis=1))
    # One key orders by row, then by id.
    rows = np.repeat(np.arange(len(offsets) - 1, dtype=np.int64), lengths_of(offsets))
    keys = (rows[kept] << 32) | token_ids[kept]
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    first = np.ones(len(keys), np.bool_)
    first[1:] = keys[1:] != keys[:-1]
    starts = np.flatnonzero(first)
    largest = np.maximum.reduceat(weights[kept[order]], starts) if len(starts) else np.zeros(0, np.float32)
    counts = np.bincount(keys[starts] >> 32, minlength=len(offsets) - 1)
    return SparseRows(
        offsets_of(counts),
        (keys[starts] & 0xFFFFFFFF).astype(np.int32),
        largest.astype(np.float32, copy=False),
    )


def strongest(rows: SparseRows, most: int | None) -> SparseRows:
    """The `most` largest weights of each row, all without a limit; of equal ones those of lower ids."""
    lengths = lengths_of(rows.indptr)
    if most is None or int(lengths.max(initial=0)) <= most:
        return rows
    texts = np.repeat(np.arange(len(rows)), lengths)
    order = np.lexsort((-rows.weights, texts))  # stable, so equal weights stay in order of their ids
    rank = np.arange(len(order)) - np.repeat(rows.indptr[:-1], lengths)
    kept = np.sort(order[rank < most])
    return SparseRows(offsets_of(np.minimum(lengths, most)), rows.token_ids[kept], rows.weights[kept])
