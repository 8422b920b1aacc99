"""Dense retrieval with FAISS: inner product over the float16 vectors of a segment.

The vectors are stored once, as a memory-mapped float16[N, D]. FAISS views them in place: a scalar-quantizer
index of 16-bit floats whose codes are that memory. Exact search scans the view; the HNSW graph is a file
without vectors (`dense.faiss`), mapped and attached to the view; IVF-PQ keeps its own small codes in that
file, and what it proposes is scored again from the view. All scores come from one FAISS kernel, so equal
vectors score equal to the last bit, whatever index or segment they are in.

FAISS starts an OpenMP pool in every thread that searches, so a search uses the calling thread alone, and
callers run searches side by side. A process that used FAISS must not be forked: a search in the child hangs.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from index.candidates import DenseOptions
from index.errors import DamagedIndexError, DenseBuildError, DeviceUnavailableError, InvalidQueryError
from models.representations import Bool, Float32, Int64

# FAISS for GPUs brings the libcurand.so.10 of CUDA 12, and the encoder's libraries that of CUDA 13: the same
# functions under the same name. Who asks by name gets the one that was loaded first, and both FAISS and torch
# load CUDA 12's where they find it. FAISS calls none of the functions, so the encoder's own comes first.
# Elsewhere there is no such file, and nothing to settle.
with suppress(OSError):
    ctypes.CDLL("libcurand.so.10")

try:
    import faiss as _faiss
except ImportError as error:
    raise ImportError(
        "dense retrieval needs FAISS: pip install -c constraints.txt -e '.[cpu]', or '.[gpu]'"
    ) from error

faiss: Any = _faiss  # its own type stubs lack much of what is used here

DenseKind = Literal["auto", "flat", "hnsw", "ivfpq"]
Device = Literal["cpu", "gpu"]
Float16 = npt.NDArray[np.float16]

INDEX_FILE = "dense.faiss"
FLAT_DOCUMENTS = 20_000  # up to here a scan is as fast as the graph, and exact
HNSW_DOCUMENTS = 4_000_000  # of a collection; past here the vectors that a graph walks over seldom fit memory
SMALLEST_INDEX = 1_000  # documents; fewer are scanned, whatever the kind: a part of the format
HNSW_NEIGHBOURS = 32
HNSW_ROWS = 2_048  # inserted between two questions whether to go on
HNSW_EF_CONSTRUCTION = 200  # 100 builds in half the time, and loses a point of recall@200
ROWS_PER_EF = 40  # vectors scanned in the time of one more efSearch, measured by benchmarks/dense.py
PQ_DIMENSIONS = 4  # that one byte of a PQ code stands for
PQ_CANDIDATES = 8  # rows scored again from float16, for each one wanted
POINTS_PER_LIST = 64  # training rows for each inverted list
TIE_MARGIN = 16  # rows asked for beyond k, so that most ties with the k-th show at once
GATHERED_ROWS = 4_096  # as few allowed rows as these are copied together rather than found by a bitmap
CHUNK_BYTES = 64 << 20  # float32 rows converted at once while building
GPU_LARGEST_K = 2_048  # limit of GPU FAISS

_reading = threading.Lock()  # FAISS keeps its limits on reading in global variables


def require_device(device: Device) -> None:
    """Raises DeviceUnavailableError where dense search cannot run on the device."""
    if device == "gpu" and (not hasattr(faiss, "StandardGpuResources") or faiss.get_num_gpus() == 0):
        raise DeviceUnavailableError(
            "dense search on a GPU was asked for, but this FAISS sees none: "
            "pip install -c constraints.txt -e '.[gpu]' on a machine with a GPU, or use the device cpu"
        )


def choose_kind(vectors: int, collection_vectors: int) -> DenseKind:
    """The kind that suits a segment of this many vectors, in a collection of so many up to its last."""
    if vectors <= FLAT_DOCUMENTS:
        return "flat"
    return "hnsw" if collection_vectors <= HNSW_DOCUMENTS else "ivfpq"


def _kind_used(kind: DenseKind, documents: int) -> DenseKind:
    if documents < SMALLEST_INDEX:
        return "flat"
    return choose_kind(documents, documents) if kind == "auto" else kind


def leave_cores_to_others() -> None:
    """From now on indexes that the calling thread builds take half of the cores at most."""
    faiss.omp_set_num_threads(max(1, faiss.omp_get_max_threads() // 2))


def build_dense(
    kind: DenseKind, vectors: Float16, folder: Path, require_going: Callable[[], None] = lambda: None
) -> None:
    """Write `dense.faiss` for float16[N, D] into the folder; nothing where vectors are scanned.

    require_going: is called now and then while a graph is built, and may raise to end that.

    HNSW holds a private copy of the vectors while it builds (2 · N · D bytes); IVF-PQ its training rows.
    Raises OSError where the file cannot be written whole, and DenseBuildError where FAISS fails or has too
    little memory.
    """
    used = _kind_used(kind, len(vectors))
    try:
        if used == "hnsw":
            _write(_build_hnsw(vectors, require_going), folder / INDEX_FILE, faiss.IO_FLAG_SKIP_STORAGE)
        elif used == "ivfpq":
            _write(_build_ivfpq(vectors), folder / INDEX_FILE)
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


def _write(index: Any, path: Path, flags: int = 0) -> None:
    """Write an index through a file of ours, in pieces: FAISS's own does not notice a failure to close it."""
    with path.open("wb") as file:
        faiss.write_index(index, faiss.PyCallbackIOWriter(file.write), flags)


def _build_hnsw(vectors: Float16, require_going: Callable[[], None]) -> Any:
    index = faiss.IndexHNSWSQ(
        vectors.shape[1], faiss.ScalarQuantizer.QT_fp16, HNSW_NEIGHBOURS, faiss.METRIC_INNER_PRODUCT
    )
    index.hnsw.efConstruction = HNSW_EF_CONSTRUCTION
    for first in range(0, len(vectors), HNSW_ROWS):
        require_going()
        index.add(vectors[first : first + HNSW_ROWS].astype(np.float32))
    return index


def _build_ivfpq(vectors: Float16) -> Any:
    documents, dimension = vectors.shape
    lists = max(1, min(int(documents**0.5), documents // POINTS_PER_LIST))
    index = faiss.IndexIVFPQ(
        faiss.IndexFlatIP(dimension), dimension, lists, _pq_bytes(dimension), 8, faiss.METRIC_INNER_PRODUCT
    )
    index.cp.min_points_per_centroid = index.pq.cp.min_points_per_centroid = 1
    wanted = min(documents, max(lists * POINTS_PER_LIST, 1 << 15))
    sample = np.random.default_rng(0).choice(documents, wanted, replace=False)
    index.train(vectors[np.sort(sample)].astype(np.float32))
    for rows in _float32_chunks(vectors):
        index.add(rows)
    return index


def _pq_bytes(dimension: int) -> int:
    """The most bytes of a PQ code that divide the dimension, each for 4 values or more."""
    return next(m for m in range(max(1, dimension // PQ_DIMENSIONS), 0, -1) if dimension % m == 0)


def _float32_chunks(vectors: Float16) -> Iterator[Float32]:
    step = max(1, CHUNK_BYTES // (4 * vectors.shape[1]))
    for first in range(0, len(vectors), step):
        yield vectors[first : first + step].astype(np.float32)


def _view(vectors: Float16) -> Any:
    """An exact FAISS index over the memory of C-contiguous float16[N, D]; the caller keeps that alive."""
    index = faiss.IndexScalarQuantizer(
        vectors.shape[1], faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT
    )
    codes = np.asarray(vectors).reshape(-1).view(np.uint8)
    index.codes = faiss.MaybeOwnedVectorUInt8.create_view(
        faiss.swig_ptr(codes), codes.nbytes, index.codes.owner
    )
    index.ntotal = len(vectors)
    return index


@contextmanager
def _calling_thread_only() -> Iterator[None]:
    """Keep FAISS from starting OpenMP threads for what runs inside."""
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(threads)


def _read(path: Path, vectors: Float16) -> Any:
    """Map an index file of `vectors`. Raises DamagedIndexError where it is missing or does not belong."""
    try:
        size = path.stat().st_size
        with _reading:
            flags = faiss.IO_FLAG_MMAP_IFC | faiss.IO_FLAG_SKIP_PRECOMPUTE_TABLE  # the table is for L2
            limit = faiss.get_deserialization_vector_byte_limit()
            faiss.set_deserialization_vector_byte_limit(size)
            try:
                index = faiss.read_index(str(path), flags)
            finally:
                faiss.set_deserialization_vector_byte_limit(limit)
    except (OSError, RuntimeError) as error:
        raise DamagedIndexError(f"{path} cannot be read ({error}); restore it or build again") from error
    if (index.ntotal, index.d) != vectors.shape:
        raise DamagedIndexError(
            f"{path} is of {index.ntotal} vectors of {index.d} values, the segment has {vectors.shape}; "
            "restore it or build again"
        )
    return index


def _scan(view: Any, query: Float32, k: int, passing: int, selector: Any | None) -> tuple[Int64, Float32]:
    """The k best of the `passing` selected rows and all that tie with the k-th, best first, then by row.

    query: float32[1, D]; k is from 1 to `passing`.
    """
    parameters = None if selector is None else faiss.SearchParameters(sel=selector)
    wanted = min(k + TIE_MARGIN, passing)
    while True:
        scores, rows = (found[0] for found in view.search(query, wanted, params=parameters))
        if wanted == passing or scores[-1] < scores[k - 1]:
            break
        wanted = min(4 * wanted, passing)
    kept = scores >= scores[k - 1]
    rows, scores = rows[kept], scores[kept]
    order = np.lexsort((rows, -scores))
    return rows[order], scores[order]


def _selector(allowed: Bool | None) -> Any | None:
    return None if allowed is None else faiss.IDSelectorBitmap(np.packbits(allowed, bitorder="little"))


class DenseIndex:
    """An opened dense index; its arrays stay memory-mapped, and any number of threads may search."""

    def __init__(self, vectors: Float16, used: DenseKind, index: Any, gpu: _Gpu | None) -> None:
        self._vectors = vectors
        self._view = _view(vectors)
        self._used = used
        self._index = index
        self._gpu = gpu
        if used == "hnsw":
            index.storage, index.own_fields = self._view, False

    @staticmethod
    def scanning(vectors: Float16) -> DenseIndex:
        """An exact index of float16[N, D] that compares a query with all of them."""
        return DenseIndex(np.ascontiguousarray(vectors), "flat", None, None)

    @staticmethod
    def open(kind: DenseKind, vectors: Float16, folder: Path, device: Device = "cpu") -> DenseIndex:
        """Open the index of float16[N, D] that `build_dense` wrote with the same kind.

        On the device "gpu", flat and IVF-PQ indexes are copied to the first GPU and searches without a
        filter run there; the HNSW graph stays on the CPU. Raises DamagedIndexError, and
        DeviceUnavailableError where there is no GPU.
        """
        vectors = np.ascontiguousarray(vectors)
        used = _kind_used(kind, len(vectors))
        index = None if used == "flat" else _read(folder / INDEX_FILE, vectors)
        gpu = _Gpu(vectors, index) if device == "gpu" and used != "hnsw" else None
        return DenseIndex(vectors, used, index, gpu)

    @property
    def scans(self) -> bool:
        """Whether each search compares the query with all vectors, so that a large k costs little more."""
        return self._used == "flat"

    def search(
        self, query: Float32, k: int, allowed: Bool | None = None, options: DenseOptions | None = None
    ) -> tuple[Int64, Float32]:
        """The k rows with the largest inner product with float32[D]: exact for flat, else nearly all of them.

        allowed: bool[N], rows that may be returned, or None for all. Returns rows int64[K] and scores
        float32[K], best first, equal scores by row. All rows found that tie with the k-th are returned, so K
        may exceed k. Raises InvalidQueryError for a query of another dimension or with values not finite.
        """
        documents, dimension = self._vectors.shape
        if query.shape != (dimension,) or not np.isfinite(query).all():
            raise InvalidQueryError(
                f"a dense query of shape {query.shape} does not fit: it needs {dimension} finite values"
            )
        passing = documents if allowed is None else int(np.count_nonzero(allowed))
        k = min(k, passing)
        if k <= 0:
            return np.empty(0, np.int64), np.empty(0, np.float32)
        row = np.ascontiguousarray(query, np.float32)[None]
        with _calling_thread_only():
            proposed = self._propose(row, k, allowed, passing, options or DenseOptions())
            if len(proposed) >= k:
                return self._among(row, k, proposed)
            if passing <= GATHERED_ROWS and allowed is not None:
                return self._among(row, k, np.flatnonzero(allowed))
            return _scan(self._view, row, k, passing, _selector(allowed))

    def _among(self, query: Float32, k: int, rows: Int64) -> tuple[Int64, Float32]:
        """The exact best of a few rows."""
        vectors = np.ascontiguousarray(self._vectors[rows])
        places, scores = _scan(_view(vectors), query, k, len(rows), None)
        return rows[places], scores

    def _propose(
        self, query: Float32, k: int, allowed: Bool | None, passing: int, options: DenseOptions
    ) -> Int64:
        """Rows among which the best are, ascending; none where scanning all is as fast.

        The rarer the allowed rows, the more is visited to find as many of them. FAISS may return rows that
        its selector excludes (facebookresearch/faiss issue 5504), so they are checked again.
        """
        if self._gpu is not None and allowed is None:
            found = self._gpu.propose(query, k, options)
        elif self._used == "hnsw":
            found = self._from_graph(query, k, allowed, passing, options.ef_search)
        elif self._used == "ivfpq":
            found = self._from_lists(query, k, allowed, passing, options.nprobe)
        else:
            return np.empty(0, np.int64)
        rows = np.sort(found[found >= 0])
        return rows if allowed is None else rows[allowed[rows]]

    def _from_graph(
        self, query: Float32, k: int, allowed: Bool | None, passing: int, ef_search: int
    ) -> Int64:
        wanted = k + TIE_MARGIN
        # A graph searched no wider than what is wanted of it misses the last of them.
        visited = max(ef_search, 2 * wanted) * len(self._vectors) // passing
        if passing <= ROWS_PER_EF * visited:
            return np.empty(0, np.int64)
        parameters = faiss.SearchParametersHNSW(efSearch=visited, sel=_selector(allowed))
        rows: Int64 = self._index.search(query, wanted, params=parameters)[1][0]
        return rows

    def _from_lists(self, query: Float32, k: int, allowed: Bool | None, passing: int, nprobe: int) -> Int64:
        probed = max(1, nprobe) * len(self._vectors) // passing
        if probed * len(self._vectors) >= self._index.nlist * passing:
            return np.empty(0, np.int64)
        parameters = faiss.SearchParametersIVF(nprobe=probed, sel=_selector(allowed))
        rows: Int64 = self._index.search(query, PQ_CANDIDATES * k, params=parameters)[1][0]
        return rows


class _Gpu:
    """A copy of a flat or IVF-PQ index on the first GPU. GPU FAISS allows one search at a time."""

    def __init__(self, vectors: Float16, lists: Any | None) -> None:
        require_device("gpu")
        self._searching = threading.Lock()
        self._resources = faiss.StandardGpuResources()
        self._has_lists = lists is not None
        if lists is not None:
            self._index = faiss.index_cpu_to_gpu(self._resources, 0, lists)
            return
        configuration = faiss.GpuIndexFlatConfig()
        configuration.useFloat16 = True
        self._index = faiss.GpuIndexFlatIP(self._resources, vectors.shape[1], configuration)
        for rows in _float32_chunks(vectors):
            self._index.add(rows)

    def propose(self, query: Float32, k: int, options: DenseOptions) -> Int64:
        """Rows to be scored again, -1 where missing; none for a k past the GPU's limit."""
        wanted = min(PQ_CANDIDATES * k if self._has_lists else k + TIE_MARGIN, self._index.ntotal)
        if wanted > GPU_LARGEST_K:
            return np.empty(0, np.int64)
        parameters = faiss.SearchParametersIVF(nprobe=max(1, options.nprobe)) if self._has_lists else None
        with self._searching:
            rows: Int64 = self._index.search(query, wanted, params=parameters)[1][0]
        return rows
