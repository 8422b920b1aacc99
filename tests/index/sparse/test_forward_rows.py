"""Lexical weights by document: what is streamed in parts is read back as one."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tercet.index.errors import DamagedIndexError
from tercet.index.files.array_folder import ArrayFolder
from tercet.index.files.memory_arrays import MemoryArrays
from tercet.index.sparse import forward_rows
from tercet.index.sparse.forward_rows import ForwardRowsWriter, number_terms, open_forward_rows
from tercet.index.sparse.inverted_index import build_inverted
from tercet.index.sparse.term_statistics import TermStatistics
from tercet.models.representations import SparseRows


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


def test_terms_of_few_weights_are_numbered_in_order() -> None:
    few = rows([0, 2, 2, 4], [7, 90, 3, 7], [1, 2, 3, 4])
    numbered, token_ids = number_terms(few, 100)
    assert token_ids.tolist() == [3, 7, 90]
    assert numbered.token_ids.tolist() == [1, 2, 0, 1]
    assert (numbered.indptr.tolist(), numbered.weights.tolist()) == ([0, 2, 2, 4], [1, 2, 3, 4])
    for vocabulary in (63, 90):  # too many weights, a term outside that others will find
        same, token_ids = number_terms(few, vocabulary)
        assert same is few
        assert token_ids.tolist() == list(range(vocabulary))
    numbered, token_ids = number_terms(rows([0, 0], [], []), 9)
    assert (len(numbered), len(token_ids)) == (1, 0)


def test_numbered_terms_give_the_same_arrays(random_texts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sparse, written = random_texts(40, 8).sparse, []
    for share in (0, 10**9):
        monkeypatch.setattr(forward_rows, "FEW_WEIGHTS", share)
        arrays = MemoryArrays()
        build_inverted(sparse, 5000, arrays)
        TermStatistics.of(sparse, 5000).write(arrays)
        written.append(dict(arrays._arrays))
    few, many = written
    assert few.keys() == many.keys()
    for name, array in few.items():
        np.testing.assert_array_equal(array, many[name], name, strict=True)
