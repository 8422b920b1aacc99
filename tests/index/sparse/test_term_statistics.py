"""Counts of terms: by hand, exact in any division, and checked where they are opened."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tercet.index.errors import DamagedIndexError
from tercet.index.files.array_folder import ArrayFolder
from tercet.index.sparse import document_frequencies, term_statistics
from tercet.index.sparse.term_statistics import FREQUENCIES, MASSES, TermStatistics
from tercet.models.representations import SparseRows


def rows(*documents: dict[int, float]) -> SparseRows:
    pairs = [pair for document in documents for pair in sorted(document.items())]
    return SparseRows(
        np.cumsum([0, *(len(document) for document in documents)]),
        np.array([term for term, _ in pairs], np.int32),
        np.array([weight for _, weight in pairs], np.float32),
    )


def test_counts_by_hand() -> None:
    found = TermStatistics.of(rows({1: 0.5, 4: 1.25}, {}, {1: 0.25, 7: 2e-7, 8: 3e38}), 10)
    assert found.terms.tolist() == [1, 4, 7, 8]
    assert found.frequencies.tolist() == [2, 1, 1, 1]
    # In millionths; a weight below half of one counts nothing, one above 10,000 as that.
    assert found.masses.tolist() == [750_000, 1_250_000, 0, 10_000_000_000]
    assert [array.dtype for array in (found.terms, found.frequencies, found.masses)] == ["i4", "i4", "i8"]


def test_pieces_and_parts_count_alike(random_texts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sparse = random_texts(200, 3).sparse
    whole = TermStatistics.of(sparse, 60)
    monkeypatch.setattr(term_statistics, "WEIGHTS_AT_ONCE", 7)
    monkeypatch.setattr(document_frequencies, "IDS_AT_ONCE", 11)
    by_pieces = TermStatistics.of(sparse, 60)
    first, second = (TermStatistics.of(sparse.take(np.arange(*ends)), 60) for ends in ((0, 90), (90, 200)))
    frequencies, masses = np.zeros((2, 60), np.int64)
    for part in (first, second):
        frequencies[part.terms] += part.frequencies
        masses[part.terms] += part.masses
    for found in (by_pieces, TermStatistics(whole.terms, frequencies[whole.terms], masses[whole.terms])):
        assert found.terms.tolist() == whole.terms.tolist()
        assert found.frequencies.tolist() == whole.frequencies.tolist()
        assert found.masses.tolist() == whole.masses.tolist()


def test_they_come_back_from_their_files(tmp_path: Path) -> None:
    written = TermStatistics.of(rows({1: 0.5}, {1: 1.0, 3: 2.0}), 10)
    written.write(ArrayFolder(tmp_path))
    opened = TermStatistics.open(ArrayFolder(tmp_path), written.terms, 2, 10)
    assert opened.frequencies.tolist() == [2, 1]
    assert opened.masses.tolist() == [1_500_000, 2_000_000]
    nothing = TermStatistics.of(rows({}, {}), 10)
    (tmp_path / "empty").mkdir()
    nothing.write(ArrayFolder(tmp_path / "empty"))
    assert len(TermStatistics.open(ArrayFolder(tmp_path / "empty"), nothing.terms, 2, 10).masses) == 0


@pytest.mark.parametrize(
    ("file", "values", "fault"),
    [
        (FREQUENCIES, np.array([2, 3], np.int32), "a segment of 2 cannot have"),
        (FREQUENCIES, np.array([2, 0], np.int32), "a segment of 2 cannot have"),
        (FREQUENCIES, np.array([2], np.int32), ""),
        (MASSES, np.array([5, -1]), "a mass below 0"),
        (MASSES, np.array([5, 1, 2]), ""),
        (MASSES, None, ""),
    ],
)
def test_damage_names_its_file(tmp_path: Path, file: str, values: Any, fault: str) -> None:
    written = TermStatistics.of(rows({1: 0.5}, {1: 1.0, 3: 2.0}), 10)
    written.write(ArrayFolder(tmp_path))
    ArrayFolder(tmp_path).remove(file)
    if values is not None:
        ArrayFolder(tmp_path).write(file, values)
    with pytest.raises(DamagedIndexError, match=f"{file}.*{fault}"):
        TermStatistics.open(ArrayFolder(tmp_path), written.terms, 2, 10)


def test_terms_beyond_the_vocabulary_are_damage(tmp_path: Path) -> None:
    written = TermStatistics.of(rows({1: 0.5, 9: 1.0}), 10)
    written.write(ArrayFolder(tmp_path))
    with pytest.raises(DamagedIndexError, match=r"inverted_terms\.npy holds a token id outside"):
        TermStatistics.open(ArrayFolder(tmp_path), written.terms, 1, 9)
