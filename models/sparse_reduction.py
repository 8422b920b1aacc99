"""Token weights to sparse rows: the maximum per token id."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

import numpy as np

from models.representations import Float32, Int32, Int64, SparseRows, offsets_of


def reduce_sparse(
    token_ids: Int32, weights: Float32, offsets: Int64, special_ids: AbstractSet[int]
) -> SparseRows:
    """Largest weight of each token id in each text; special ids and weights not above 0 are dropped.

    token_ids: int32[ΣL]; weights: float32[ΣL]; offsets: int64[B+1]. Ids ascend within a row.
    """
    rows = np.repeat(np.arange(len(offsets) - 1, dtype=np.int64), np.diff(offsets))
    kept = (weights > 0) & ~np.isin(token_ids, np.fromiter(special_ids, np.int32, len(special_ids)))
    # One key orders by row, then by id.
    keys = (rows[kept] << 32) | token_ids[kept].astype(np.int64)
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    largest = np.maximum.reduceat(weights[kept][order], starts) if len(starts) else np.zeros(0, np.float32)
    counts = np.bincount(keys[starts] >> 32, minlength=len(offsets) - 1)
    return SparseRows(
        offsets_of(counts),
        (keys[starts] & 0xFFFFFFFF).astype(np.int32),
        largest.astype(np.float32, copy=False),
    )
