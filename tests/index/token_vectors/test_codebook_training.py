"""How near centroids come to vectors, beside FAISS's k-means."""

import faiss
import numpy as np
import pytest

from tercet.index.token_vectors.codebook_training import ROUNDS, VECTORS_PER_CENTROID, train_codebook
from tercet.models.representations import Float32

DIMENSION = 16


def around(centers: Float32, count: int, spread: float, seed: int) -> Float32:
    """Vectors of length 1 around each of some directions, in random order."""
    generator = np.random.default_rng(seed)
    vectors = np.repeat(centers, count, axis=0)
    vectors += spread * generator.standard_normal(vectors.shape).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return generator.permutation(vectors).astype(np.float32)


def directions(count: int) -> Float32:
    return np.random.default_rng(7).standard_normal((count, DIMENSION)).astype(np.float32)


def error(vectors: Float32, centroids: Float32) -> float:
    """The mean squared distance of the vectors to their nearest centroids."""
    distances = np.square(vectors).sum(1)[:, None] - 2 * vectors @ centroids.T + np.square(centroids).sum(1)
    return float(distances.min(axis=1).mean())


def centroids_of(sample: Float32) -> Float32:
    """The centroids that are learned, in the space of the vectors."""
    book = train_codebook(sample, 4)
    return (book.halves[0] * np.float32(book.step)) @ book.rotation


def by_faiss(sample: Float32) -> Float32:
    wanted = len(sample) // VECTORS_PER_CENTROID
    clustering = faiss.Kmeans(DIMENSION, wanted, niter=ROUNDS, seed=0, min_points_per_centroid=1)
    clustering.train(sample)
    return clustering.centroids


@pytest.mark.slow
@pytest.mark.parametrize("spread", [0.1, 0.5, 2.0])
def test_centroids_come_as_near_as_those_of_faiss(spread: float) -> None:
    sample, others = (around(directions(60), 200, spread, seed) for seed in (0, 1))
    assert error(others, centroids_of(sample)) < 1.01 * error(others, by_faiss(sample))


@pytest.mark.slow
def test_one_vector_that_comes_again_and_again_takes_no_centroids_from_others() -> None:
    often = np.repeat(directions(1) / np.linalg.norm(directions(1)), 18_000, axis=0)
    others = around(directions(61)[1:], 30, 0.1, seed=0)
    sample = np.random.default_rng(1).permutation(np.concatenate([often, others]))
    centroids = centroids_of(sample)
    assert error(others, centroids) < 1.1 * error(others, by_faiss(sample))
    assert error(often[:1], centroids) < 1e-3


def test_vectors_that_are_all_equal_have_a_codebook() -> None:
    sample = np.repeat(directions(1) / np.linalg.norm(directions(1)), 2000, axis=0)
    assert error(sample[:1], centroids_of(sample)) < 1e-3
