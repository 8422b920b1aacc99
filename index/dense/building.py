"""Builds the FAISS file of a segment: an HNSW graph without vectors, or inverted lists of small codes.

Codes are those of PQ, or of RaBitQ, which keeps two bits of each value after a random rotation, so that no
value says more than another. At about the same size and time RaBitQ's find more, and need no training but of
the lists.

Of rows with equal vectors only the first is in it (`index/dense/equal_rows.py`). The numbers in the file are
rows of the segment: in a graph the others are there as well, without links, and nothing leads to them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tercet.index.dense.equal_rows import EqualRows
from tercet.index.dense.kinds import DenseKind, kind_used
from tercet.index.dense.library import CHUNK_BYTES, INDEX_FILE, Float16, faiss, write_index
from tercet.index.errors import DenseBuildError
from tercet.index.files.array_folder import ArrayFolder
from tercet.models.representations import Int64

HNSW_NEIGHBOURS = 32
HNSW_ROWS = 2_048  # inserted between two questions whether to go on
HNSW_EF_CONSTRUCTION = 200  # 100 builds in half the time, and loses a point of recall@200
PQ_DIMENSIONS = 4  # that one byte of a PQ code stands for
RABITQ_BITS = 2  # of a value; three or more find little more, and take longer
ROTATION_SEED = 5
POINTS_PER_LIST = 64  # training rows for each inverted list


def build_dense(
    kind: DenseKind, vectors: Float16, arrays: ArrayFolder, inserted: Callable[[int], None] = lambda _: None
) -> None:
    """Writes `dense.faiss` for float16[N, D] into the folder, and beside it which rows are equal, where some
    are; nothing where vectors are scanned. kind: any but auto.

    inserted: is told of so many more vectors, before and after each block of them, and may raise to end that.

    HNSW holds a private copy of the vectors while it builds (2 · N · D bytes); IVF-PQ its training rows.
    Raises OSError where the file cannot be written whole, and DenseBuildError where FAISS fails or has too
    little memory.
    """
    if kind_used(kind, len(vectors)) == "flat":
        inserted(len(vectors))
        return
    equal = EqualRows.of(vectors)
    if equal is not None:
        equal.write(arrays)
    rows = np.arange(len(vectors)) if equal is None else np.flatnonzero(equal.distinct(len(vectors)))
    used = kind_used(kind, len(rows))
    if used == "flat":
        inserted(len(vectors))
    try:
        if used == "hnsw":
            graph = _build_hnsw(vectors, rows, inserted)
            write_index(graph, arrays.folder / INDEX_FILE, faiss.IO_FLAG_SKIP_STORAGE)
        elif used != "flat":
            lists = _rabitq_lists(vectors, rows) if used == "ivfrabitq" else _pq_lists(vectors, rows)
            _fill_lists(lists, vectors, rows, inserted)
            write_index(lists, arrays.folder / INDEX_FILE)
    except (RuntimeError, MemoryError) as error:
        reason = " ".join(str(error).split()) or "no reason given"
        remedy = (
            "free some memory, or build in a collection of the dense kind flat"
            if isinstance(error, MemoryError)
            else "build again, or in a collection of the dense kind flat"
        )
        raise DenseBuildError(
            f"the {used} index of {len(vectors)} vectors of {vectors.shape[1]} values could not be built "
            f"({reason}): {remedy}"
        ) from error


def _build_hnsw(vectors: Float16, rows: Int64, inserted: Callable[[int], None]) -> Any:
    """The graph over distinct rows int64[M], ascending, whose nodes have the numbers of N rows."""
    index = faiss.IndexHNSWSQ(
        vectors.shape[1], faiss.ScalarQuantizer.QT_fp16, HNSW_NEIGHBOURS, faiss.METRIC_INNER_PRODUCT
    )
    index.hnsw.efConstruction = HNSW_EF_CONSTRUCTION
    inserted(len(vectors) - len(rows))  # those that others stand for
    for first in range(0, len(rows), HNSW_ROWS):
        some = rows[first : first + HNSW_ROWS]
        index.add(vectors[some].astype(np.float32))
        inserted(len(some))
    if len(rows) < len(vectors):
        _renumber(index, rows, len(vectors))
    return index


def _renumber(index: Any, rows: Int64, documents: int) -> None:
    """Gives node m of a graph the number rows[m], of N; nodes of other numbers have no links."""
    graph = index.hnsw
    levels, sizes = np.ones(documents, np.int32), np.full(documents, graph.nb_neighbors(0), np.int64)
    levels[rows] = faiss.vector_to_array(graph.levels)
    sizes[rows] = np.diff(faiss.vector_to_array(graph.offsets).astype(np.int64))
    offsets = np.zeros(documents + 1, np.uint64)
    np.cumsum(sizes, out=offsets[1:])
    linked = np.zeros(documents, np.bool_)
    linked[rows] = True
    neighbours = np.full(int(offsets[-1]), -1, np.int32)
    former = faiss.vector_to_array(graph.neighbors)
    neighbours[np.repeat(linked, sizes)] = np.where(former >= 0, rows.astype(np.int32)[former], -1)
    faiss.copy_array_to_vector(levels, graph.levels)
    faiss.copy_array_to_vector(offsets, graph.offsets)
    faiss.copy_array_to_vector(neighbours, graph.neighbors)
    graph.entry_point = int(rows[graph.entry_point])
    index.ntotal = documents


def _pq_lists(vectors: Float16, rows: Int64) -> Any:
    dimension = vectors.shape[1]
    index = faiss.IndexIVFPQ(
        faiss.IndexFlatIP(dimension),
        dimension,
        _lists(len(rows)),
        _pq_bytes(dimension),
        8,
        faiss.METRIC_INNER_PRODUCT,
    )
    index.cp.min_points_per_centroid = index.pq.cp.min_points_per_centroid = 1
    return index


def _rabitq_lists(vectors: Float16, rows: Int64) -> Any:
    dimension = vectors.shape[1]
    rotation = faiss.RandomRotationMatrix(dimension, dimension)
    rotation.init(ROTATION_SEED)
    lists, own = _lists(len(rows)), True
    index = faiss.IndexIVFRaBitQ(
        faiss.IndexFlatIP(dimension), dimension, lists, faiss.METRIC_INNER_PRODUCT, own, RABITQ_BITS
    )
    index.cp.min_points_per_centroid = 1
    return faiss.IndexPreTransform(rotation, index)


def _lists(vectors: int) -> int:
    return max(1, min(int(vectors**0.5), vectors // POINTS_PER_LIST))


def _fill_lists(index: Any, vectors: Float16, rows: Int64, inserted: Callable[[int], None]) -> None:
    """Trains lists with some of the distinct rows int64[M] and fills them with all, by their numbers."""
    wanted = min(len(rows), max(_lists(len(rows)) * POINTS_PER_LIST, 1 << 15))
    sample = np.random.default_rng(0).choice(rows, wanted, replace=False)
    inserted(0)
    index.train(vectors[np.sort(sample)].astype(np.float32))
    inserted(len(vectors) - len(rows))
    step = max(1, CHUNK_BYTES // (4 * vectors.shape[1]))
    for first in range(0, len(rows), step):
        some = rows[first : first + step]
        index.add_with_ids(vectors[some].astype(np.float32), some)
        inserted(len(some))


def _pq_bytes(dimension: int) -> int:
    """The most bytes of a PQ code that divide the dimension, each for 4 values or more."""
    return next(m for m in range(max(1, dimension // PQ_DIMENSIONS), 0, -1) if dimension % m == 0)
