"""Token pooling: by hand, beside SciPy's clustering by Ward's criterion, and in a collection."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.cluster.hierarchy import fcluster, ward

from tercet.index.live.collection import LiveCollection
from tercet.index.token_vectors import pooling
from tercet.index.token_vectors.pooling import pooled
from tercet.models.representations import Float32, TokenVectors, offsets_of
from tests.index.search.test_ranking import ALL, named, of_tokens


def texts(*lengths: int, dimension: int = 16) -> TokenVectors:
    """Random vectors of length 1."""
    vectors = np.random.default_rng(0).standard_normal((sum(lengths), dimension))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return TokenVectors(vectors.astype(np.float32), offsets_of(np.array(lengths)))


def test_two_tokens_that_are_alike_share_their_mean() -> None:
    vectors = np.array([[1, 0], [0, 1], [0.8, 0.6], [-1, 0]], np.float32)
    found = pooled(TokenVectors(vectors, np.array([0, 4, 4])), 2)
    # The first and the third are nearest, then the second and their mean (0.9, 0.3): 2/3 of |(0.9, -0.7)|²
    # is 0.87, less than half of |(1, 1)|², which the second is from the last.
    joined = np.array([1.8, 1.6]) / np.hypot(1.8, 1.6)
    np.testing.assert_allclose(found.vectors, [joined, [-1, 0]], atol=1e-6)
    assert found.offsets.tolist() == [0, 2, 2]


def test_opposite_tokens_have_no_mean_and_keep_the_first() -> None:
    found = pooled(TokenVectors(np.array([[0, 1], [0, -1]], np.float32), np.array([0, 2])), 2)
    assert found.vectors.tolist() == [[0, 1]]


@pytest.mark.parametrize("factor", [2, 3, 4])
def test_clusters_are_those_of_scipy(factor: int) -> None:
    lengths = [1, 0, 2, 9, 40, 120]
    tokens = texts(*lengths)
    found = pooled(tokens, factor)
    assert np.diff(found.offsets).tolist() == [-(-length // factor) for length in lengths]
    for text, length in enumerate(lengths):
        if length < 2:
            continue
        own = tokens.row(text).astype(np.float64)
        labels = fcluster(ward(own), -(-length // factor), "maxclust")
        firsts = sorted(set(labels), key=labels.tolist().index)
        means = np.stack([own[labels == label].mean(axis=0) for label in firsts])
        means /= np.linalg.norm(means, axis=1, keepdims=True)
        np.testing.assert_allclose(found.row(text), means, atol=1e-5)


def test_a_long_text_is_pooled_in_runs() -> None:
    tokens = texts(2 * pooling.RUN + 3)
    found = pooled(tokens, 4)
    edges = np.array([0, pooling.RUN, 2 * pooling.RUN, 2 * pooling.RUN + 3])
    parts = pooled(TokenVectors(tokens.vectors, edges), 4)  # as texts of their own
    np.testing.assert_array_equal(found.vectors, parts.vectors)


def test_a_collection_scores_with_what_it_keeps(build: Any) -> None:
    tokens = texts(*[8] * 5).vectors.reshape(5, 8, 16)
    query = texts(3).vectors
    corpus = named(5, 1), of_tokens(tokens)
    snapshot = build(corpus, token_codec="float16", token_pooling=2).snapshot()
    ids, scores = snapshot.score_all(of_tokens(query[None]))
    kept = pooled(TokenVectors(tokens.reshape(-1, 16), 8 * np.arange(6)), 2)
    expected = [(query @ kept.row(row).T).max(axis=1).mean() for row in range(5)]
    np.testing.assert_allclose(scores[:, 2], expected, atol=1e-3)
    assert len(snapshot.stored(ids[0])[1].colbert.vectors) == 4
    found = snapshot.search(of_tokens(query[None]), candidates=ALL).hits
    assert found[0].scores.colbert == pytest.approx(
        dict(zip(ids, expected, strict=True))[found[0].document.id], abs=1e-3
    )


def test_a_live_collection_pools_once(build: Any) -> None:
    tokens: Float32 = texts(*[8] * 5).vectors.reshape(5, 8, 16)
    names = named(6, 1)
    collection = build((names[:5], of_tokens(tokens)), token_pooling=4)

    def kept(row: int) -> Float32:
        found: Float32 = collection.snapshot().stored(names[row].id)[1].colbert.vectors
        return found

    with LiveCollection(collection) as live:
        live.put(names[5:], of_tokens(tokens[:1]))
        live.flush()
        live.merge()
    np.testing.assert_array_equal(kept(5), kept(0))
    assert len(kept(5)) == 2
