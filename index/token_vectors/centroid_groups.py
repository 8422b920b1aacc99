"""The nearest of many centroids, by way of groups of them.

A vector meets the centers of all groups, and then the centroids of those groups alone that are near (an
inverted file over the centroids: Jégou, Douze and Schmid 2011, section 5). Groups are made of the centroids
by whole numbers, so that they are the same wherever they are made, and no file has them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tercet.index.codebook import HALF_OFFSET, VALUES_AT_ONCE, UInt8
from tercet.index.native.kernels import nearest_centroids
from tercet.index.token_vectors.integer_query import LANES, as_bytes, pack_lanes
from tercet.models.representations import Float32, Float64, Int64

UInt16 = npt.NDArray[np.uint16]

CENTROIDS_OF_GROUP = 32
ROUNDS = 10
# A group is looked at where its center, less this share of the distance to its farthest centroid, is nearer
# than the nearest centroid known. With all of it none is missed. With this share one of 200 is, for one
# nearly as near: squared errors of what is stored grow by .06 %, and a fourth of the products are left.
REACH = 0.4


@dataclass(frozen=True, eq=False)
class CentroidGroups:
    """Centroids of R values in G groups, as kernels take them: in panels of 16, S values each, a multiple of
    64, with zeros behind.

    centers: uint8[A, S/4, 16, 4], center_halves and reaches: float32[A, 16]; starts: int64[G + 1] of each
    group's panels, uint8[P, S/4, 16, 4]; halves: float32[P, 16], half of the squared lengths, in steps, and
    without end where a lane has no centroid; numbers: uint16[P, 16] of the centroids.
    """

    centers: UInt8
    center_halves: Float32
    reaches: Float32
    starts: Int64
    panels: UInt8
    halves: Float32
    numbers: UInt16

    @staticmethod
    def of(centroids: UInt8) -> CentroidGroups:
        """Of centroids uint8[M, R], 64 added, by Lloyd's algorithm (1982) from some of them on."""
        wanted = max(1, len(centroids) // CENTROIDS_OF_GROUP)
        centers = centroids[:: len(centroids) // wanted][:wanted].copy()
        vectors = _values(centroids).astype(np.float32)
        groups = _single_group(centers).nearest(vectors)
        for _ in range(ROUNDS if wanted > 1 else 0):
            order = np.argsort(groups, kind="stable")
            used, starts, counts = np.unique(groups[order], return_index=True, return_counts=True)
            sums = np.add.reduceat(centroids[order].astype(np.int64), starts)
            centers[used] = (2 * sums + counts[:, None]) // (2 * counts[:, None])
            groups = _single_group(centers).nearest(vectors)
        return _grouped(centroids, centers, groups)

    def nearest(self, vectors: Float32) -> UInt16:
        """The number uint16[T] of the centroid nearest to each of the vectors float32[T, R], in steps.

        Found with the vectors as bytes, among the groups that are near; of equal centroids it is the first.
        """
        nearest = np.empty(len(vectors), np.uint16)
        nearest_centroids(
            *as_bytes(vectors),
            self.centers,
            self.center_halves,
            self.reaches,
            self.starts,
            self.panels,
            self.halves,
            self.numbers,
            nearest,
        )
        return nearest


def _single_group(centroids: UInt8) -> CentroidGroups:
    return _grouped(centroids, centroids[:1], np.zeros(len(centroids), np.uint16))


def _grouped(centroids: UInt8, centers: UInt8, groups: npt.NDArray[np.integer]) -> CentroidGroups:
    """centers: uint8[G, R], of which some may have no centroid; groups: uint16[M], of each centroid."""
    used, groups = np.unique(groups, return_inverse=True)
    centers = centers[used]
    counts = np.bincount(groups, minlength=len(centers))
    starts = np.concatenate([[0], np.cumsum(-(-counts // LANES))])
    order = np.argsort(groups, kind="stable")
    rank = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    lanes = np.repeat(starts[:-1] * LANES, counts) + rank
    numbers = np.zeros(starts[-1] * LANES, np.uint16)
    numbers[lanes] = order
    reaches = np.zeros(len(centers))
    np.maximum.at(reaches, groups, _squares(_values(centroids) - _values(centers)[groups]))
    return CentroidGroups(
        *_panels(centers, np.arange(len(centers))),
        _by_lanes(REACH * np.sqrt(reaches), np.arange(len(centers)), 0),
        starts,
        *_panels(centroids[order], lanes),
        numbers.reshape(-1, LANES),
    )


def _panels(centroids: UInt8, lanes: Int64) -> tuple[UInt8, Float32]:
    """Panels and half lengths of centroids uint8[M, R] that stand in these lanes int64[M]."""
    count, kept = int(lanes.max()) + 1, centroids.shape[1]
    values = np.zeros((-(-count // LANES) * LANES, -(-kept // VALUES_AT_ONCE) * VALUES_AT_ONCE), np.int8)
    values[lanes, :kept] = centroids
    halves = _by_lanes(_squares(_values(centroids)) / 2, lanes, np.inf)
    return pack_lanes(values)[0].view(np.uint8), halves


def _by_lanes(values: Float64, lanes: Int64, other: float) -> Float32:
    found = np.full(-(-(int(lanes.max()) + 1) // LANES) * LANES, other, np.float32)
    found[lanes] = values
    return found.reshape(-1, LANES)


def _values(centroids: UInt8) -> Int64:
    return centroids.astype(np.int64) - HALF_OFFSET


def _squares(values: Int64) -> Int64:
    squares: Int64 = np.square(values).sum(axis=1)
    return squares
