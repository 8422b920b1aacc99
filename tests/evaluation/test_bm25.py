"""BM25 against its formula."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tercet.evaluation.bm25 import K1, B, Bm25
from tercet.models.representations import TokenBatch, offsets_of


def batch(*texts: list[int]) -> TokenBatch:
    lengths = np.array([len(text) for text in texts])
    return TokenBatch(
        np.concatenate([np.array(text, np.int32) for text in texts]),
        offsets_of(lengths),
        np.zeros(len(texts), np.bool_),
    )


def expected(frequency: int, length: int, holding: int, documents: int, mean_length: float) -> float:
    idf = math.log(1 + (documents - holding + 0.5) / (holding + 0.5))
    return idf * frequency / (frequency + K1 * (1 - B + B * length / mean_length))


def test_scores_follow_the_formula_and_leave_special_tokens_out() -> None:
    # 1 and 2 are special; the words are 10, 11, 12.
    index = Bm25([batch([1, 10, 11, 2]), batch([1, 10, 10, 10, 12, 2], [1, 2])], frozenset({1, 2}))
    scores = index.scores(np.array([1, 10, 12, 99, 2], np.int32))
    mean = 6 / 3
    assert scores == pytest.approx(
        [expected(1, 2, 2, 3, mean), expected(3, 4, 2, 3, mean) + expected(1, 4, 1, 3, mean), 0.0]
    )


def test_a_query_without_known_words_scores_nothing() -> None:
    index = Bm25([batch([1, 10, 2])], frozenset({1, 2}))
    assert index.scores(np.array([1, 77, 2], np.int32)).tolist() == [0.0]


def test_documents_without_words_score_nothing() -> None:
    index = Bm25([batch([1, 2], [1, 2])], frozenset({1, 2}))
    assert index.scores(np.array([1, 10, 2], np.int32)).tolist() == [0.0, 0.0]
