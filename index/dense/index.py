"""Dense retrieval with FAISS: inner product over the float16 vectors of a segment.

The vectors are stored once, as a memory-mapped float16[N, D]. Exact search scans them; the HNSW graph is a
file without vectors (`dense.faiss`), mapped, and a walk compares the query with the vectors in their place;
lists of PQ or RaBitQ keep their own small codes in that file, and what they propose is scored again. All
scores come from one compiled product, so equal vectors score equal to the last bit, whatever index or segment
they are in.

Graph and lists have each distinct vector once. A search finds distinct ones, and then all rows of each.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tercet.index.candidates import DenseOptions
from tercet.index.dense.equal_rows import EqualRows
from tercet.index.dense.gpu import GpuIndex
from tercet.index.dense.graph import Graph
from tercet.index.dense.kinds import DenseKind, Device, kind_used
from tercet.index.dense.library import INDEX_FILE, Float16, calling_thread_only, faiss, read_index
from tercet.index.dense.scan import DenseScan, Scanned
from tercet.index.documents.row_set import RowSet
from tercet.index.files.arrays import ArraySource
from tercet.index.native.kernels import dense_vectors, products_at
from tercet.models.representations import Float32, Int64

ROWS_PER_EF = 40  # vectors scanned in the time of one more efSearch, measured by benchmarks/dense.py
ALLOWED_PER_EF = 20  # the same where a filter leaves gaps between them
# Of its effort without a filter, and for the share that is allowed, so much gives a graph the same recall
# with one: what is wanted then lies farther out, where the nearest are known to a greater part.
WIDENED = 0.625
WIDEST_STEP = 8  # times as many vectors are visited next, where hardly any of the nearest is allowed
# Rows of lists scored again from float16, for each one wanted.
LIST_CANDIDATES: Mapping[DenseKind, int] = {"ivfpq": 8, "ivfrabitq": 4}
TIE_MARGIN = 16  # rows asked for beyond k, so that most ties with the k-th show at once


Neighbors = tuple[Int64, Float32]
"""Rows int64[K] and their scores float32[K]."""


def least_effort(k: int) -> int:
    """How many vectors a walk for k keeps at least: one that keeps no more than is wanted misses the last."""
    return 2 * (k + TIE_MARGIN)


def usual_effort(k: int) -> int:
    """How many it keeps where nobody says: of the 200 nearest among 100,000 it finds .997, and .992 with the
    least effort (decision 8).
    """
    return 3 * (k + TIE_MARGIN)


def _effort(k: int, options: DenseOptions) -> int:
    return usual_effort(k) if options.ef_search is None else max(options.ef_search, least_effort(k))


class DenseIndex:
    """An opened dense index; its arrays stay memory-mapped, and any number of threads may search.

    record: its vectors float16[N, D], as kernels take them.
    """

    def __init__(
        self,
        vectors: Float16,
        used: DenseKind,
        index: Any = None,
        equal: EqualRows | None = None,
        gpu: GpuIndex | None = None,
    ) -> None:
        self._vectors = vectors
        self.record = dense_vectors(vectors)
        self._used = used
        self._index = index
        self._equal = equal
        self._count = len(vectors) - (0 if equal is None else equal.repeated)  # distinct rows
        self._gpu = gpu
        if used == "hnsw":
            self._graph = Graph(index, vectors)
        elif used in LIST_CANDIDATES:
            self._lists: int = faiss.extract_index_ivf(index).nlist

    @staticmethod
    def scanning(vectors: Float16) -> DenseIndex:
        """An exact index of float16[N, D] that compares a query with all of them."""
        return DenseIndex(np.ascontiguousarray(vectors), "flat")

    @staticmethod
    def open(
        kind: DenseKind, vectors: Float16, arrays: ArraySource, folder: Path, device: Device = "cpu"
    ) -> DenseIndex:
        """Opens the index of float16[N, D] that `build_dense` wrote with the same kind.

        arrays: where it has its arrays, folder: where its file is. On the device "gpu", flat and IVF-PQ
        indexes are copied to the first GPU and searches without a filter run there; the others stay on the
        CPU. Raises DamagedIndexError, and DeviceUnavailableError where there is no GPU.
        """
        vectors = np.ascontiguousarray(vectors)
        documents, dimension = vectors.shape
        equal = EqualRows.open(arrays, documents)
        distinct = documents - (0 if equal is None else equal.repeated)
        used = kind_used(kind, distinct)
        index = None
        if used == "hnsw":  # whose nodes have the numbers of all rows
            index = read_index(folder / INDEX_FILE, used, documents, dimension)
        elif used != "flat":
            index = read_index(folder / INDEX_FILE, used, distinct, dimension)
        for_gpu = used == "ivfpq" or (used == "flat" and equal is None)
        gpu = GpuIndex(vectors, index) if device == "gpu" and for_gpu else None
        return DenseIndex(vectors, used, index, equal, gpu)

    @property
    def scans(self) -> bool:
        """Whether each search compares the query with all vectors, so that a large k costs little more."""
        return self._used == "flat"

    def scans_for(self, k: int, allowed: RowSet | None, options: DenseOptions) -> bool:
        """Whether a search for k compares the query with all rows that are allowed, None for all."""
        if self._used == "flat" or self._gpu is not None:
            return self._gpu is None
        passing = self._count if allowed is None else len(allowed)
        if self._used == "hnsw":
            rows_per_ef = ROWS_PER_EF if allowed is None else ALLOWED_PER_EF
            return passing <= rows_per_ef * _effort(k, options)
        return self._probed(passing, options.nprobe) is None

    @property
    def has_lists(self) -> bool:
        """Whether short codes in lists say which rows are worth a look, on the processor."""
        return self._used in LIST_CANDIDATES and self._gpu is None

    def propose_from_lists(
        self, query: Float32, count: int, allowed: RowSet | None, options: DenseOptions
    ) -> tuple[Int64, Float32]:
        """So many distinct rows by what their codes say of float32[D]: int64[n], and their scores float32[n].

        allowed: rows that may be returned, or None for all. Fewer where the lists that are looked at have no
        more, or where comparing all is as fast.
        """
        if allowed is not None and self._equal is not None:
            allowed = self._equal.among(allowed)
        passing = self._count if allowed is None else len(allowed)
        return self._by_codes(query, min(count, passing), allowed, passing, options.nprobe)

    def rows_like(self, rows: Int64) -> Int64:
        """All rows that have the vectors of distinct ones int64[K]."""
        return rows if self._equal is None else self._equal.expand(rows)[0]

    def search(
        self, query: Float32, k: int, allowed: RowSet | None = None, options: DenseOptions | None = None
    ) -> tuple[Int64, Float32]:
        """The k rows with the largest inner product with float32[D]: exact for flat, else nearly all of them.

        query: finite; allowed: rows that may be returned, or None for all. Returns rows int64[K] and scores
        float32[K], best first, equal scores by row. All rows found that tie with the k-th are returned, so K
        may exceed k.
        """
        nearest = self.without_scan(query, k, allowed, options or DenseOptions())
        if nearest is not None:
            return nearest
        scan = DenseScan([Scanned(0, self.record, len(self._vectors), allowed)], query, k)
        parts = zip(*(part() for part in scan.parts), strict=True)
        _, rows, scores = (np.concatenate(columns) for columns in parts)
        return _cut(rows, scores, k)

    def without_scan(
        self, query: Float32, k: int, allowed: RowSet | None, options: DenseOptions
    ) -> Neighbors | None:
        """The k nearest rows; None where `search` compares the query with all rows that are allowed."""
        k = min(k, len(self._vectors) if allowed is None else len(allowed))
        if k <= 0:
            return np.empty(0, np.int64), np.empty(0, np.float32)
        distinct = allowed if self._equal is None or allowed is None else self._equal.among(allowed)
        passing = self._count if distinct is None else len(distinct)
        wanted = min(k, passing)
        nearest = self._proposed(query, wanted, distinct, passing, options)
        if nearest is None or len(nearest[0]) < wanted:
            return None
        nearest = _cut(*nearest, wanted)
        return nearest if self._equal is None else _expanded(self._equal, *nearest, k, allowed)

    def _among(self, query: Float32, k: int, rows: Int64) -> tuple[Int64, Float32]:
        query = np.ascontiguousarray(query, np.float32)
        return _cut(rows, products_at((self.record,), np.zeros_like(rows), rows, query), k)

    def _proposed(
        self, query: Float32, k: int, allowed: RowSet | None, passing: int, options: DenseOptions
    ) -> Neighbors | None:
        """Rows among which the best are, with exact scores; None where scanning all allowed is as fast."""
        if self._gpu is not None and allowed is None:
            wanted = LIST_CANDIDATES.get(self._used, 1) * k + TIE_MARGIN
            rows = self._gpu.propose(np.ascontiguousarray(query, np.float32)[None], wanted, options)
            rows = np.sort(rows[rows >= 0])
            return self._among(query, k, rows) if len(rows) >= k else None
        if self._used == "hnsw":
            effort = _effort(k, options)
            if allowed is not None:
                return self._from_graph_among(query, k, allowed, effort)
            return None if self._count <= ROWS_PER_EF * effort else self._graph.walk(query, effort)
        if self._used in LIST_CANDIDATES:
            rows, _ = self._by_codes(query, LIST_CANDIDATES[self._used] * k, allowed, passing, options.nprobe)
            return self._among(query, k, rows) if len(rows) >= k else None
        return None

    def _from_graph_among(self, query: Float32, k: int, allowed: RowSet, effort: int) -> Neighbors | None:
        """The allowed ones of the vectors that are nearest to the query, as many of these as it takes.

        FAISS's own selectors are not asked: they return what the walk came by, and miss what lies nearer
        where few of the near vectors are allowed (facebookresearch/faiss issue 4727), or return what is not
        (issue 5504). Of the nearest all are known, and where too few of them are allowed, more are visited.
        """
        wanted = k + TIE_MARGIN
        visited = max(effort, math.ceil(WIDENED * effort * self._count / len(allowed)))
        while len(allowed) > ALLOWED_PER_EF * visited:
            rows, scores = self._graph.walk(query, visited)
            inside = allowed.has(rows)
            count = int(np.count_nonzero(inside))
            if count >= wanted:
                return rows[inside], scores[inside]
            visited *= min(max(2, -(-wanted // max(count, 1))), WIDEST_STEP)
        return None

    def _probed(self, passing: int, nprobe: int) -> int | None:
        """How many lists to look at where so many rows are allowed; None where comparing these is as fast."""
        probed = max(1, nprobe) * self._count // max(1, passing)
        return None if probed * self._count >= self._lists * passing else probed

    def _by_codes(
        self, query: Float32, count: int, allowed: RowSet | None, passing: int, nprobe: int
    ) -> Neighbors:
        """So many of the allowed rows by their codes, best first; fewer where the lists that are looked at
        have no more, none where comparing all is as fast.
        """
        probed = self._probed(passing, nprobe)
        if passing == 0 or probed is None:
            return np.empty(0, np.int64), np.empty(0, np.float32)
        selector = None if allowed is None else faiss.IDSelectorBitmap(allowed.packed)
        parameters = faiss.SearchParametersIVF(nprobe=probed, sel=selector)
        if self._used == "ivfrabitq":  # which rotates the query first
            parameters = faiss.SearchParametersPreTransform(index_params=parameters)
        row = np.ascontiguousarray(query, np.float32)[None]
        with calling_thread_only():
            batch_scores, batch_rows = self._index.search(row, count, params=parameters)
        scores, rows = batch_scores[0], batch_rows[0]
        return (rows, scores) if rows[-1] >= 0 else (rows[rows >= 0], scores[rows >= 0])  # -1: no more


def _cut(rows: Int64, scores: Float32, k: int) -> Neighbors:
    """The k best and all that tie with the k-th, best first, then by row."""
    if len(rows) > k:
        kept = scores >= np.partition(scores, len(scores) - k)[len(scores) - k]
        rows, scores = rows[kept], scores[kept]
    order = np.lexsort((rows, -scores))
    return rows[order], scores[order]


def _expanded(
    equal: EqualRows, rows: Int64, scores: Float32, k: int, allowed: RowSet | None
) -> tuple[Int64, Float32]:
    """All allowed rows that the best distinct ones stand for, cut after the k-th and those that tie with it.

    rows: int64[K], as scores float32[K], best first.
    """
    rows, owners = equal.expand(rows)
    if allowed is not None:
        inside = allowed.has(rows)
        rows, owners = rows[inside], owners[inside]
    scores = scores[owners]
    return _cut(rows, scores, min(k, len(rows)))
