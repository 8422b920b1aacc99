"""The best of what one side proposes, cut alike over segments and over shards."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from index.files.packed_bytes import PackedBytes, first_of
from models.representations import Float32, Int64


def kept_of(
    scores: Float32, limit: int, ids_of: Callable[[Int64], PackedBytes], places: Int64 | None = None
) -> Int64:
    """Which of K documents are the `limit` best by scores float32[K], equal ones by id: int64[n], in no
    order.

    ids_of: gives the ids of some; places: int64[K], by which those of one id are told apart, by default the
    order that they stand in.
    """
    if len(scores) <= limit:
        return np.arange(len(scores))
    lowest = np.partition(scores, len(scores) - limit)[len(scores) - limit]
    above, last = np.flatnonzero(scores > lowest), np.flatnonzero(scores == lowest)
    if len(above) + len(last) > limit:
        if places is not None:
            last = last[np.argsort(places[last], kind="stable")]
        last = last[first_of(ids_of(last), limit - len(above))]
    return np.concatenate([above, last])
