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

from index.compiled import compiled
from index.dense.half_products import HALF_BYTES, product
from index.dense.library import Float16, faiss
from index.files.addresses import address_of, bring_near
from index.files.arrays import frozen
from models.representations import Float32, Int64

Array = npt.NDArray[Any]
NODES_PER_WORD = 64


class Graph:
    """The links of a FAISS index, which are mapped, over float16[N, D]; any number of threads may walk."""

    def __init__(self, index: Any, vectors: Float16) -> None:
        graph = index.hnsw
        self._index = index  # has the memory that the arrays are in
        self._vectors = vectors
        self._links = faiss.rev_swig_ptr(graph.neighbors.data(), graph.neighbors.size())
        self._offsets = faiss.rev_swig_ptr(graph.offsets.data(), graph.offsets.size()).view(np.int64)
        self._widths = faiss.vector_to_array(graph.cum_nneighbor_per_level).astype(np.int64)
        self._entry, self._top = int(graph.entry_point), int(graph.max_level)
        self.walk(np.zeros(vectors.shape[1], np.float32), 1)  # compiles: whoever opens waits, not a search

    def walk(self, query: Float32, effort: int) -> tuple[Int64, Float32]:
        """The `effort` best vectors that a walk which keeps so many comes by: rows int64[K] and scores
        float32[K], in any order; fewer where no more are linked.

        query: float32[D], finite; effort: 1 or more.
        """
        found: tuple[Int64, Float32] = _walk(
            address_of(self._vectors, np.float16),
            frozen(self._links),
            frozen(self._offsets),
            frozen(self._widths),
            self._entry,
            self._top,
            np.ascontiguousarray(query, np.float32),
            effort,
        )
        return found


@compiled(nogil=True)
def _walk(
    vectors: int,
    links: Array,
    offsets: Array,
    widths: Array,
    entry: int,
    top: int,
    query: Array,
    effort: int,
) -> tuple[Array, Array]:
    """As `Graph.walk`.

    vectors: where float16[N, D] begin; links: int32, of each node those of one level after the other, the
    free ones -1 at the end of each; offsets: int64[N + 1], of each node's; widths: int64[levels + 1], where
    those of a level begin; entry, top: the node to begin with, and its level.
    """
    dimension = len(query)
    row = HALF_BYTES * dimension
    node: Any = np.int64(entry)
    score: Any = product(vectors + row * node, dimension, query.ctypes)
    for level in range(top, 0, -1):
        node, score = _climb(vectors, links, offsets, widths, level, query, node, score)
    seen = np.zeros(len(offsets) // NODES_PER_WORD + 1, np.uint64)
    _is_new(seen, node)
    best, best_nodes = np.empty(effort, np.float32), np.empty(effort, np.int64)
    near, near_nodes = np.empty(4 * effort, np.float32), np.empty(4 * effort, np.int64)  # scores below zero
    _push(best, best_nodes, 0, score, node)
    kept, waiting = 1, 0
    fresh = np.empty(widths[1], np.int64)
    while node >= 0:
        count = _new_neighbours(links[offsets[node] : offsets[node] + widths[1]], seen, fresh)
        for place in range(count):
            bring_near(vectors + row * fresh[place], row)
        node, waiting = _take_nearest(near, near_nodes, waiting, best[0] if kept == effort else -np.inf)
        if node >= 0:
            bring_near(links.ctypes.data + links.itemsize * offsets[node], links.itemsize * widths[1])
        for place in range(count):
            score = product(vectors + row * fresh[place], dimension, query.ctypes)
            if kept < effort:
                _push(best, best_nodes, kept, score, fresh[place])
                kept += 1
            elif score > best[0]:
                _replace_first(best, best_nodes, kept, score, fresh[place])
            else:
                continue
            if waiting == len(near):
                near = np.append(near, np.empty(waiting, np.float32))
                near_nodes = np.append(near_nodes, np.empty(waiting, np.int64))
            _push(near, near_nodes, waiting, -score, fresh[place])
            waiting += 1
        if node < 0:  # what came of the last one may be near enough
            node, waiting = _take_nearest(near, near_nodes, waiting, best[0] if kept == effort else -np.inf)
    return best_nodes[:kept], best[:kept]


@compiled(nogil=True)
def _climb(
    vectors: int,
    links: Array,
    offsets: Array,
    widths: Array,
    level: int,
    query: Array,
    node: Any,
    score: float,
) -> tuple[Any, Any]:
    """The node of a level from which no link leads to a better one, and its score."""
    row = HALF_BYTES * len(query)
    former = np.int64(-1)
    while node != former:
        former = node
        first, last = offsets[former] + widths[level], offsets[former] + widths[level + 1]
        while last > first and links[last - 1] < 0:
            last -= 1
        for place in range(first, last):
            neighbour: Any = np.int64(links[place])
            bring_near(vectors + row * neighbour, row)
        for place in range(first, last):
            neighbour = np.int64(links[place])
            other = product(vectors + row * neighbour, len(query), query.ctypes)
            if other > score:
                node, score = neighbour, other
    return node, score


@compiled(nogil=True)
def _take_nearest(near: Array, nodes: Array, waiting: Any, floor: float) -> tuple[Any, Any]:
    """The nearest node that waits, and how many then do; -1 where none does or its score is below a floor.

    near: their scores below zero, the lowest first.
    """
    if waiting == 0 or -near[0] < floor:
        return np.int64(-1), waiting
    node = nodes[0]
    waiting -= 1
    _replace_first(near, nodes, waiting, near[waiting], nodes[waiting])
    return node, waiting


@compiled(nogil=True)
def _new_neighbours(links: Array, seen: Array, fresh: Array) -> Any:
    """Writes those of a node's links that are met for the first time, and returns how many these are."""
    count = 0
    for link in links:
        if link < 0:
            break
        if _is_new(seen, np.int64(link)):
            fresh[count] = link
            count += 1
    return count


@compiled(nogil=True)
def _is_new(seen: Array, node: Any) -> bool:
    """Whether a node is met for the first time, and keeps that in bits uint64."""
    word, bit = node // NODES_PER_WORD, np.uint64(1) << np.uint64(node % NODES_PER_WORD)
    new = (seen[word] & bit) == 0
    seen[word] |= bit
    return bool(new)


@compiled(nogil=True)
def _push(keys: Array, nodes: Array, count: int, key: float, node: Any) -> None:
    """Adds to a heap of `count` whose lowest key is first."""
    place = count
    while place > 0 and keys[(place - 1) // 2] > key:
        keys[place], nodes[place] = keys[(place - 1) // 2], nodes[(place - 1) // 2]
        place = (place - 1) // 2
    keys[place], nodes[place] = key, node


@compiled(nogil=True)
def _replace_first(keys: Array, nodes: Array, count: int, key: float, node: Any) -> None:
    """Puts another in place of the lowest of a heap of `count`."""
    place = 0
    while 2 * place + 1 < count:
        child = 2 * place + 1
        if child + 1 < count and keys[child + 1] < keys[child]:
            child += 1
        if keys[child] >= key:
            break
        keys[place], nodes[place] = keys[child], nodes[child]
        place = child
    keys[place], nodes[place] = key, node
