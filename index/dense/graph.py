"""A walk over an HNSW graph that FAISS built, which waits for memory as little as it can.

A walk compares the query with thousands of vectors that lie anywhere, and most of its time is waiting for
them. All neighbours of a node that are new are asked for before the first is compared, so that they come side
by side; FAISS's own walk waits for one after the other. The links of the node to go to next are asked for by
then, too, so that node is chosen one step ahead: it is the nearest of those known before the neighbours are
compared. Hardly another node is visited for that. The algorithm is that of Malkov and Yashunin (arXiv
1603.09320, algorithms 2 and 5).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tercet.index.dense.library import Float16, faiss
from tercet.index.native.kernels import dense_graph, walk_graph
from tercet.models.representations import Float32, Int64


class Graph:
    """The links of a FAISS index, which are mapped, over float16[N, D]; any number of threads may walk."""

    def __init__(self, index: Any, vectors: Float16) -> None:
        graph = index.hnsw
        self._index = index  # has the memory that the arrays are in
        self._record = dense_graph(
            vectors,
            _bytes_of(graph.neighbors),
            _bytes_of(graph.offsets),
            faiss.vector_to_array(graph.cum_nneighbor_per_level).astype(np.int64),
        )
        self._entry, self._top = int(graph.entry_point), int(graph.max_level)

    def walk(self, query: Float32, effort: int) -> tuple[Int64, Float32]:
        """The `effort` best vectors that a walk which keeps so many comes by: rows int64[K] and scores
        float32[K], in any order; fewer where no more are linked.

        query: float32[D], finite; effort: 1 or more. Raises DamagedIndexError where a link leads nowhere.
        """
        query = np.ascontiguousarray(query, np.float32)
        return walk_graph((self._record,), query, self._entry, self._top, effort)


def _bytes_of(mapped: Any) -> npt.NDArray[np.uint8]:
    """The bytes of a vector of FAISS, in their place."""
    return np.asarray(faiss.rev_swig_ptr(mapped.data(), mapped.size())).view(np.uint8)
