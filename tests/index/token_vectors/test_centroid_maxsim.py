"""Late interaction with centroids, against its formula."""

import numpy as np
import pytest

from tercet.index.token_vectors.centroid_maxsim import CentroidProducts
from tercet.index.token_vectors.codebook_training import train_codebook
from tercet.index.token_vectors.query import QueryTokens
from tercet.index.token_vectors.store import TokenVectorStore
from tercet.index.token_vectors.texts import StoredTexts
from tercet.models.representations import TokenVectors, offsets_of
from tests.index.token_vectors.test_codebook import clustered


@pytest.mark.slow
@pytest.mark.parametrize(("dimension", "tokens"), [(8, 1), (24, 16), (1024, 20)])
def test_scores_are_those_of_the_centroids(dimension: int, tokens: int) -> None:
    book = train_codebook(clustered(2000, dimension), 1)
    lengths = np.array([5, 0, 30, 8, 1])
    vectors = clustered(int(lengths.sum()), dimension, 2)
    store = TokenVectorStore.encode(TokenVectors(vectors, offsets_of(lengths)), "residual1", book)
    query = 3 * clustered(tokens, dimension, 3)
    asked = QueryTokens.of(query, "residual1", book)
    assert asked.integers is not None
    assert store.centroids is not None
    rows = np.array([4, 2, 1, 0, 0, 3])
    scores = CentroidProducts.of(asked.integers, book).scores(StoredTexts.of(store, rows))
    centroids = (book.centroids.astype(np.float64) - 64) * book.step @ book.rotation
    for row, score in zip(rows.tolist(), scores.tolist(), strict=True):
        own = centroids[store.centroids[store.offsets[row] : store.offsets[row + 1]]]
        expected = (query.astype(np.float64) @ own.T).max(axis=1).mean() if len(own) else 0
        assert score == pytest.approx(expected, abs=0.02)


def test_it_needs_centroids() -> None:
    book = train_codebook(clustered(2000, 8), 1)
    asked = QueryTokens.of(clustered(3, 8), "residual1", book).integers
    assert asked is not None
    store = TokenVectorStore.encode(TokenVectors(clustered(4, 8), np.array([0, 4])), "int8")
    with pytest.raises(ValueError, match="without centroids"):
        CentroidProducts.of(asked, book).scores(StoredTexts.of(store, np.array([0])))
