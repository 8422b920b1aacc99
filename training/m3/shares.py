"""Work that all processes do together: each has a share, and what comes of it is gathered in order."""

from __future__ import annotations

import numpy as np

from tercet.models.representations import Int64, Representations, SparseRows, TokenVectors, offsets_of
from tercet.training.distributed import Ranks, gather_array


def share_of(rows: Int64, ranks: Ranks) -> Int64:
    """This process's part of rows that all have; the parts of all, one after another, are the whole."""
    return np.array_split(rows, ranks.size)[ranks.rank]


def representations_of_all(own: Representations, ranks: Ranks) -> Representations:
    """The texts of all processes, in order of rank. All outputs are there."""
    if ranks.size == 1:
        return own
    dense, sparse, colbert = own.dense, own.sparse, own.colbert
    assert dense is not None  # noqa: S101 - as the caller says
    assert sparse is not None  # noqa: S101
    assert colbert is not None  # noqa: S101
    return Representations(
        gather_array(own.tokens, ranks),
        gather_array(own.truncated, ranks),
        gather_array(dense, ranks),
        SparseRows(
            offsets_of(gather_array(np.diff(sparse.indptr), ranks)),
            gather_array(sparse.token_ids, ranks),
            gather_array(sparse.weights, ranks),
        ),
        TokenVectors(
            gather_array(colbert.vectors, ranks), offsets_of(gather_array(np.diff(colbert.offsets), ranks))
        ),
    )
