"""FAISS as it is used here: index files mapped and written, threads.

FAISS starts an OpenMP pool in every thread that searches, so a search uses the calling thread alone, and
callers run searches side by side. A forked process has none of its parent's pool, and would wait for it for
ever: FAISS takes one thread there.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tercet.index.dense.faiss_layout import require_layout
from tercet.index.dense.kinds import DenseKind
from tercet.index.errors import damaged
from tercet.index.files.mapping import map_file
from tercet.index.wording import reason_of
from tercet.models.representations import Float32

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
        f"dense retrieval needs FAISS ({error}): pip install -c constraints.txt -e '.[cpu]', or '.[gpu]'"
    ) from error

faiss: Any = _faiss  # its own type stubs lack much of what is used here

# Of the one thread that a fork leaves; those that it starts have pools of their own.
os.register_at_fork(after_in_child=lambda: faiss.omp_set_num_threads(1))

Float16 = npt.NDArray[np.float16]

INDEX_FILE = "dense.faiss"
CHUNK_BYTES = 64 << 20  # float32 rows converted at once while building

_reading = threading.Lock()  # FAISS keeps its limits on reading in global variables


def leave_cores_to_others() -> None:
    """From now on indexes that the calling thread builds take half of the cores at most."""
    faiss.omp_set_num_threads(max(1, faiss.omp_get_max_threads() // 2))


@contextmanager
def calling_thread_only() -> Iterator[None]:
    """Keep FAISS from starting OpenMP threads for what runs inside."""
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(threads)


def float32_chunks(vectors: Float16) -> Iterator[Float32]:
    """The rows of float16[N, D] in parts of bounded size."""
    step = max(1, CHUNK_BYTES // (4 * vectors.shape[1]))
    for first in range(0, len(vectors), step):
        yield vectors[first : first + step].astype(np.float32)


def write_index(index: Any, path: Path, flags: int = 0) -> None:
    """Write an index through a file of ours, in pieces: FAISS's own does not notice a failure to close it."""
    with path.open("wb") as file:
        faiss.write_index(index, faiss.PyCallbackIOWriter(file.write), flags)


def read_index(path: Path, kind: DenseKind, vectors: int, dimension: int) -> Any:
    """Maps an index file of a kind and of so many vectors. Raises DamagedIndexError where it is missing or
    of others.
    """
    try:
        size = path.stat().st_size
        require_layout(map_file(path), kind, vectors, dimension)
        with _reading:
            flags = faiss.IO_FLAG_MMAP_IFC | faiss.IO_FLAG_SKIP_PRECOMPUTE_TABLE  # the table is for L2
            limit = faiss.get_deserialization_vector_byte_limit()
            faiss.set_deserialization_vector_byte_limit(size)
            try:
                index = faiss.read_index(str(path), flags)
            finally:
                faiss.set_deserialization_vector_byte_limit(limit)
    except (OSError, RuntimeError, ValueError, MemoryError) as error:
        raise damaged(path, f"cannot be read ({reason_of(error)})") from error
    return index
