"""Scores of texts without an index, against a computation by hand."""

import numpy as np
import pytest

from tercet.models.representations import Representations, SparseRows, TokenVectors
from tercet.service.search import scoring
from tercet.service.search.scoring import score_texts


def some(count: int, lengths: list[int], seed: int) -> Representations:
    """Random representations of `count` texts with these numbers of token vectors."""
    random = np.random.default_rng(seed)
    terms = [np.sort(random.choice(20, 5, replace=False)).astype(np.int32) for _ in range(count)]
    return Representations(
        np.full(count, 7),
        np.zeros(count, np.bool_),
        random.normal(size=(count, 6)).astype(np.float32),
        SparseRows(
            np.arange(0, 5 * count + 1, 5), np.concatenate(terms), random.random(5 * count).astype(np.float32)
        ),
        TokenVectors(
            random.normal(size=(sum(lengths), 4)).astype(np.float32),
            np.cumsum([0, *lengths]).astype(np.int64),
        ),
    )


def test_two_texts_by_hand() -> None:
    query = Representations(
        np.array([3]),
        np.array([False]),
        np.array([[0.6, 0.8]], np.float32),
        SparseRows(np.array([0, 2]), np.array([4, 9], np.int32), np.array([0.5, 2.0], np.float32)),
        TokenVectors(np.array([[1, 0], [0, 1]], np.float32), np.array([0, 2])),
    )
    documents = Representations(
        np.array([3, 2]),
        np.array([False, False]),
        np.array([[1, 0], [0, 1]], np.float32),
        SparseRows(np.array([0, 2, 2]), np.array([9, 11], np.int32), np.array([0.25, 3.0], np.float32)),
        TokenVectors(np.array([[0.5, 0.1], [-1, 0.3], [-1, -2]], np.float32), np.array([0, 2, 3])),
    )
    scores = score_texts(query, documents)
    # colbert: (max(.5, -1) + max(.1, .3)) / 2 = .4 and (-1 + -2) / 2 = -1.5, so padding with 0 would show.
    assert np.allclose(scores, [[0.6, 0.5, 0.4], [0.8, 0.0, -1.5]])


@pytest.mark.parametrize("cells", [1, 30, 4_000_000])
def test_chunks_do_not_matter(monkeypatch: pytest.MonkeyPatch, cells: int) -> None:
    monkeypatch.setattr(scoring, "CHUNK_CELLS", cells)
    query, lengths = some(1, [5], 1), [3, 0, 1, 9, 2, 0]
    documents = some(6, lengths, 2)
    scores = score_texts(query, documents)
    assert query.colbert is not None
    assert documents.colbert is not None
    for row, length in enumerate(lengths):
        similarity = query.colbert.row(0) @ documents.colbert.row(row).T
        expected = similarity.max(axis=1).mean() if length else 0
        assert scores[row, 2] == pytest.approx(expected, abs=2e-6)
