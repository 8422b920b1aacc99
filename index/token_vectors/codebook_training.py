"""Learns a codebook from a sample of token vectors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tercet.index.codebook import (
    ENTRIES,
    HALF_OFFSET,
    LARGEST_HALF,
    Codebook,
    UInt8,
)
from tercet.index.dense.library import faiss
from tercet.index.token_vectors.centroid_groups import CentroidGroups
from tercet.index.token_vectors.coding import VECTORS_AT_ONCE
from tercet.models.representations import Float32, Int64

WIDTH = {1: 8, 2: 4, 4: 2}  # values of a piece, by the bits that each of them gets
VECTORS_PER_CENTROID = 16
MOST_CENTROIDS = 4_096
FEWEST_VECTORS = 4 * ENTRIES
MOST_VECTORS = 300_000
ROUNDS = 6  # 12 take twice the time, and come nearer by less than one percent


def train_codebook(
    sample: Float32, bits: int, seed: int = 0, progress: Callable[[float], None] = lambda share: None
) -> Codebook:
    """A codebook of `bits` (1, 2 or 4) for each of the kept dimensions, from float32[T, C].

    progress: gets the share that is done, from 0 to 1, and may raise. Of more than `MOST_VECTORS` some are
    drawn. Raises ValueError for fewer than `FEWEST_VECTORS` vectors, or a dimension that is no multiple of 8.
    """
    if len(sample) < FEWEST_VECTORS:
        raise ValueError(f"{len(sample)} token vectors are too few for a codebook; give {FEWEST_VECTORS}")
    if sample.shape[1] % 8:
        raise ValueError(f"vectors of {sample.shape[1]} values cannot be cut into pieces of 8; use int8")
    sample = sample[np.random.default_rng(seed).permutation(len(sample))[:MOST_VECTORS]]
    kept = kept_dimensions(sample.shape[1])
    centroids = _train_centroids(sample, lambda rounds: progress(rounds / (ROUNDS + 1)))
    rests = sample - centroids[_nearest(sample, centroids)]
    rotation = _balanced_rotation(rests, kept // WIDTH[bits], kept)
    tables = _train_tables(np.asarray(rests @ rotation.T, np.float32), kept // WIDTH[bits])
    centroids = centroids @ rotation.T
    step = float(max(np.abs(centroids).max(), np.abs(tables).max()) / LARGEST_HALF)
    return Codebook(rotation, _in_steps(centroids, step), _in_steps(tables, step), step)


def kept_dimensions(dimension: int) -> int:
    """Of vectors of so many values, how many dimensions a rotation keeps: all up to 128, at last half of
    them.

    A vector of 1,024 values thus takes 62 bytes with one bit for each, and 2 for its centroid.
    """
    if dimension <= 128:
        return dimension
    return max(128, (dimension // 16 - 2) * 8)


def _balanced_rotation(rests: Float32, pieces: int, kept: int) -> Float32:
    """The main directions of the rests, dealt out so that the variances in each piece have about one product.

    Rows float32[R, C]. That is the best rotation for Gaussian vectors (Ge et al. 2013, section 3.2).
    """
    mean = rests.mean(axis=0, dtype=np.float64)
    # `np.cov` would hold all rests once more, in float64.
    covariance = (rests.T @ rests).astype(np.float64) / len(rests) - np.outer(mean, mean)
    variances, directions = np.linalg.eigh(covariance)
    order = np.argsort(-variances)[:kept]
    smallest = max(float(variances[order[-1]]), np.finfo(np.float64).tiny)
    totals = np.zeros(pieces)
    members: list[list[int]] = [[] for _ in range(pieces)]
    for direction in order.tolist():
        open_pieces = [piece for piece in range(pieces) if len(members[piece]) < kept // pieces]
        least = min(open_pieces, key=totals.__getitem__)
        members[least].append(direction)
        totals[least] += np.log(max(variances[direction], smallest) / smallest)
    chosen = np.concatenate(members)
    return np.ascontiguousarray(directions[:, chosen].T, np.float32)


def _train_centroids(sample: Float32, progress: Callable[[int], None]) -> Float32:
    """Means of clusters float32[M, C] of the first vectors float32[T, C], which are drawn at random.

    Lloyd's algorithm (1982) with the kernel by which vectors are coded, which takes a third of the processor
    time of products in float32. A centroid that is nearest to no vector becomes one that is far from its own.
    """
    wanted = min(MOST_CENTROIDS, len(sample) // VECTORS_PER_CENTROID)
    vectors = sample[: wanted * VECTORS_PER_CENTROID]
    centroids = vectors[:wanted].copy()
    for done in range(ROUNDS):
        progress(done)
        nearest = _nearest(vectors, centroids)
        counts = np.bincount(nearest, minlength=wanted)
        used, unused = np.flatnonzero(counts), np.flatnonzero(counts == 0)
        starts = (np.cumsum(counts) - counts)[used]
        sums = np.add.reduceat(vectors[np.argsort(nearest, kind="stable")], starts, axis=0)
        centroids[used] = sums / counts[used, None].astype(np.float32)
        if len(unused):
            errors = np.square(vectors - centroids[nearest]).sum(axis=1)
            centroids[unused] = vectors[np.argsort(-errors, kind="stable")[: len(unused)]]
    progress(ROUNDS)
    return centroids


def _nearest(vectors: Float32, centroids: Float32) -> Int64:
    """The number int64[T] of the centroid that is nearest to each vector, as `CentroidGroups` finds it."""
    step = float(np.abs(centroids).max() / LARGEST_HALF)
    groups = CentroidGroups.of(_in_steps(centroids, step))
    nearest = np.empty(len(vectors), np.int64)
    for first in range(0, len(vectors), VECTORS_AT_ONCE):
        part = slice(first, first + VECTORS_AT_ONCE)
        nearest[part] = groups.nearest(vectors[part] / np.float32(step))
    return nearest


def _train_tables(rests: Float32, pieces: int) -> Float32:
    quantizer = faiss.ProductQuantizer(rests.shape[1], pieces, 8)
    quantizer.cp.niter, quantizer.cp.min_points_per_centroid = ROUNDS, 1  # fewer: a warning on stderr
    quantizer.train(rests)
    tables: Float32 = faiss.vector_to_array(quantizer.centroids).reshape(pieces, ENTRIES, -1)
    return tables


def _in_steps(values: Float32, step: float) -> UInt8:
    steps: UInt8 = (np.rint(values / step) + HALF_OFFSET).astype(np.uint8)
    return steps
