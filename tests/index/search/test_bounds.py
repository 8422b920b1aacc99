"""What a first look at centroids leaves unread, and that it leaves out no hit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from index.candidates import CandidateLimits, Page, Weights
from index.search import bounds
from index.token_vectors.codebook_training import train_codebook
from models.representations import Float32
from tests.index.search.test_ranking import ALL, ids_of, named, of_tokens

DOCUMENTS, LENGTH, DIMENSION, QUERIES = 800, 12, 16, 20


def around(generator: np.random.Generator, centers: Float32, count: int) -> Float32:
    """So many vectors of length 1 near each of the centers float32[N, C]: float32[N, count, C]."""
    vectors = centers[:, None] + 0.25 * generator.standard_normal((len(centers), count, centers.shape[1]))
    vectors /= np.linalg.norm(vectors, axis=2, keepdims=True)
    return vectors.astype(np.float32)


@pytest.fixture
def snapshot(build: Any) -> Any:
    """Documents about twenty subjects; those of one subject have the same few centroids."""
    generator = np.random.default_rng(0)
    subjects = generator.standard_normal((20, DIMENSION)).astype(np.float32)
    subjects /= np.linalg.norm(subjects, axis=1, keepdims=True)
    tokens = around(generator, subjects[generator.integers(20, size=DOCUMENTS)], LENGTH)
    book = train_codebook(around(generator, subjects, 100).reshape(-1, DIMENSION), 1)
    corpus = named(DOCUMENTS, 1), of_tokens(tokens)
    return build(corpus, segment=300, token_codec="residual1", codebook=book).snapshot(), tokens


def queries(tokens: Float32) -> Float32:
    """Each near tokens of one document, float32[Q, N, C]."""
    generator = np.random.default_rng(1)
    return around(generator, tokens[:QUERIES, :6].reshape(-1, DIMENSION), 1).reshape(QUERIES, 6, DIMENSION)


@pytest.mark.parametrize("colbert", [1.0, 1e-6, -2.0])
def test_what_is_not_read_is_no_hit(snapshot: Any, colbert: float) -> None:
    published, tokens = snapshot
    weights = Weights(0, 0, colbert)
    for query in queries(tokens):
        encoded = of_tokens(query[None])
        ids, scores = published.score_all(encoded)
        sums = np.round(colbert * scores[:, 2].astype(np.float64), 12)
        expected = [ids[place] for place in sorted(range(len(ids)), key=lambda p: (-sums[p], ids[p]))]
        found = published.search(encoded, top_k=30, weights=weights, candidates=ALL).hits
        assert ids_of(found) == expected[:30]
        page = published.search(encoded, top_k=5, weights=weights, candidates=ALL, page=Page(offset=25)).hits
        assert ids_of(page) == expected[25:30]


def test_most_candidates_are_not_read(snapshot: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    published, tokens = snapshot
    read: list[int] = []
    near_scores = bounds.near_scores

    def counted(segments: Any, found: Any, query: Any) -> Any:
        read.append(len(found))
        return near_scores(segments, found, query)

    monkeypatch.setattr(bounds, "near_scores", counted)
    for query in queries(tokens):
        published.search(of_tokens(query[None]), weights=Weights(0, 0, 1), candidates=ALL)
    assert len(read) == 2 * QUERIES
    assert sum(read) < 0.2 * QUERIES * DOCUMENTS
    read.clear()  # as many as would be read first anyway
    published.search(
        of_tokens(queries(tokens)[:1]), weights=Weights(0, 0, 1), candidates=CandidateLimits(60, 0)
    )
    assert read == [60]
