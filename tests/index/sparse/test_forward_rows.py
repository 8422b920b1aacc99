"""Lexical weights by document: what is streamed in parts is read back as one."""

from pathlib import Path

import numpy as np
import pytest

from index.errors import DamagedIndexError
from index.files.array_folder import ArrayFolder
from index.sparse.forward_rows import ForwardRowsWriter, open_forward_rows
from models.representations import SparseRows


def rows(indptr: list[int], token_ids: list[int], weights: list[float]) -> SparseRows:
    return SparseRows(
        np.array(indptr, np.int64), np.array(token_ids, np.int32), np.array(weights, np.float32)
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    writer = ForwardRowsWriter(ArrayFolder(tmp_path))
    writer.append(rows([0, 2, 2], [3, 7], [0.5, 2.0]))
    writer.append(rows([0, 1], [1], [0.25]))
    writer.finish()
    return tmp_path


def test_parts_become_one(folder: Path) -> None:
    opened = open_forward_rows(ArrayFolder(folder), documents=3)
    assert opened.indptr.tolist() == [0, 2, 2, 3]
    token_ids, weights = opened.row(2)
    assert (token_ids.tolist(), weights.tolist()) == ([1], [0.25])
    assert len(opened.row(1)[0]) == 0


def test_another_number_of_documents_or_a_missing_weight_is_damage(folder: Path) -> None:
    with pytest.raises(DamagedIndexError, match=r"forward_indptr\.npy"):
        open_forward_rows(ArrayFolder(folder), documents=4)
    path = folder / "forward_weights.npy"
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(DamagedIndexError, match=r"forward_weights\.npy"):
        open_forward_rows(ArrayFolder(folder), documents=3)
