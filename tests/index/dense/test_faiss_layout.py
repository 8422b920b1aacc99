"""FAISS files are held against what their collection says of them before FAISS reads them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tercet.index.dense.building import build_dense
from tercet.index.dense.kinds import DenseKind
from tercet.index.dense.library import INDEX_FILE, read_index
from tercet.index.errors import DamagedIndexError
from tercet.index.files.array_folder import ArrayFolder

VECTORS, DIMENSION = 2_000, 8
LISTS = 31  # of 64 vectors each
HEADER_BYTES = 37
KINDS: tuple[DenseKind, ...] = ("hnsw", "ivfpq", "ivfrabitq")


def written(folder: Path, kind: DenseKind) -> Path:
    vectors = np.random.default_rng(0).normal(size=(VECTORS, DIMENSION)).astype(np.float16)
    build_dense(kind, vectors, ArrayFolder(folder))
    return folder / INDEX_FILE


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_written_is_read(tmp_path: Path, kind: DenseKind) -> None:
    path = written(tmp_path, kind)
    assert read_index(path, kind, VECTORS, DIMENSION).ntotal == VECTORS
    for vectors, dimension in ((VECTORS + 1, DIMENSION), (VECTORS, DIMENSION + 1)):
        expected = f"it is of 2000 vectors of 8 values, the segment has {vectors} of {dimension}"
        with pytest.raises(DamagedIndexError, match=expected):
            read_index(path, kind, vectors, dimension)
    for other in {*KINDS} - {kind}:
        with pytest.raises(DamagedIndexError, match=r"dense\.faiss cannot be read \(it is no trained index"):
            read_index(path, other, VECTORS, DIMENSION)


@pytest.mark.parametrize(
    ("offset", "value", "message"),
    [
        (24 + 8, 0, "it is no trained index IwPQ"),  # that is: not trained, and of a metric of its own
        (HEADER_BYTES, 2**40, "it has 1099511627776 lists of 2000 vectors"),
        (HEADER_BYTES, LISTS + 1, "it is of 31 vectors of 8 values, the segment has 32 of 8"),
        (HEADER_BYTES + 16 + HEADER_BYTES, 2**40, r"it has \(1099511627776,\) in the place of \(248,\)"),
    ],
)
def test_numbers_that_cannot_be_are_refused(tmp_path: Path, offset: int, value: int, message: str) -> None:
    """FAISS would make room for them."""
    path = written(tmp_path, "ivfpq")
    content = bytearray(path.read_bytes())
    content[offset : offset + 8] = value.to_bytes(8, "little")
    path.write_bytes(content)
    with pytest.raises(DamagedIndexError, match=message):
        read_index(path, "ivfpq", VECTORS, DIMENSION)


@pytest.mark.parametrize("kind", KINDS)
def test_files_that_end_early_are_refused(tmp_path: Path, kind: DenseKind) -> None:
    path = written(tmp_path, kind)
    content = path.read_bytes()
    for size in (0, 10, 60, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:size])
        with pytest.raises(DamagedIndexError, match=r"dense\.faiss cannot be read"):
            read_index(path, kind, VECTORS, DIMENSION)


def test_lists_hold_all_vectors(tmp_path: Path) -> None:
    path = written(tmp_path, "ivfrabitq")
    content = bytearray(path.read_bytes())
    content[content.index(b"full") + 12] ^= 1
    path.write_bytes(content)
    with pytest.raises(DamagedIndexError, match="its lists do not hold 2000 vectors"):
        read_index(path, "ivfrabitq", VECTORS, DIMENSION)
