"""The nearest of many centroids against all of them, with what each processor has."""

import numpy as np
import pytest

from tercet.index.codebook import HALF_OFFSET, UInt8
from tercet.index.native import kernels
from tercet.index.token_vectors import centroid_groups
from tercet.index.token_vectors.centroid_groups import CentroidGroups
from tercet.index.token_vectors.integer_query import as_bytes
from tercet.models.representations import Float32, Float64

VARIANTS = kernels.AVAILABLE_INSTRUCTIONS
DIMENSION = 40


def scattered(count: int) -> UInt8:
    """Centroids uint8[M, 40] around sixteen points."""
    generator = np.random.default_rng(count)
    points = generator.integers(-30, 30, (16, DIMENSION))
    values = points[generator.integers(16, size=count)] + generator.integers(-20, 21, (count, DIMENSION))
    return (values + HALF_OFFSET).astype(np.uint8)


def near(centroids: UInt8, count: int, spread: float) -> Float32:
    """Vectors float32[T, 40] around some of the centroids, in steps."""
    generator = np.random.default_rng(1)
    values = centroids[generator.integers(len(centroids), size=count)].astype(np.float32) - HALF_OFFSET
    return values + spread * generator.standard_normal(values.shape).astype(np.float32)


def squared_distances(vectors: Float32, centroids: UInt8) -> Float64:
    """float64[T, M], of the vectors as bytes."""
    values, scales = as_bytes(vectors)
    points = values[:, :DIMENSION] * scales[:, None].astype(np.float64)
    differences = points[:, None] - (centroids.astype(np.float64) - HALF_OFFSET)
    squared: Float64 = np.square(differences).sum(axis=2)
    return squared


@pytest.mark.parametrize(("count", "vectors"), [(1, 3), (31, 20), (700, 300)])
def test_no_centroid_is_missed_where_groups_reach_as_far_as_their_farthest(
    monkeypatch: pytest.MonkeyPatch, count: int, vectors: int
) -> None:
    monkeypatch.setattr(centroid_groups, "REACH", 1.0)
    centroids = scattered(count)
    sample = near(centroids, vectors, 15)
    distances = squared_distances(sample, centroids)
    nearest = CentroidGroups.of(centroids).nearest(sample)
    np.testing.assert_allclose(distances[np.arange(vectors), nearest], distances.min(axis=1), rtol=1e-5)


def test_squared_distances_grow_by_less_than_a_thousandth() -> None:
    centroids = scattered(2_000)
    sample = near(centroids, 1_000, 15)
    distances = squared_distances(sample, centroids)
    nearest = CentroidGroups.of(centroids).nearest(sample)
    assert distances[np.arange(1_000), nearest].mean() < 1.001 * distances.min(axis=1).mean()


def test_all_processors_find_the_same_alone_and_beside_others(monkeypatch: pytest.MonkeyPatch) -> None:
    centroids = scattered(700)
    sample = near(centroids, 300, 15)
    sample[7] = 0
    groups = CentroidGroups.of(centroids)
    expected = groups.nearest(sample)
    for variant in VARIANTS:
        monkeypatch.setattr(
            centroid_groups, "nearest_centroids", kernels.kernels_of(variant)["nearest_centroids"]
        )
        again = CentroidGroups.of(centroids)
        np.testing.assert_array_equal(again.panels, groups.panels)
        np.testing.assert_array_equal(again.nearest(sample), expected)
        np.testing.assert_array_equal(again.nearest(sample[7:12]), expected[7:12])


def test_of_equal_centroids_it_is_the_first_and_of_nothing_the_shortest() -> None:
    centroids = scattered(200)
    centroids[150:] = centroids[:50]
    centroids[60] = HALF_OFFSET + 1
    exact = centroids[[160, 20, 199]].astype(np.float32) - HALF_OFFSET
    nothing, nearly = np.zeros((1, DIMENSION), np.float32), exact[:1] + np.float32(1e-4)
    found = CentroidGroups.of(centroids).nearest(np.concatenate([exact, nothing, nearly]))
    assert found.tolist() == [10, 20, 49, 60, 10]
    equal = np.repeat(centroids[:1], 100, axis=0)
    assert CentroidGroups.of(equal).nearest(exact).tolist() == [0, 0, 0]
