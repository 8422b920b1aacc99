"""Token pooling: a text keeps one vector for each so many of its tokens.

The token vectors of a text are joined by Ward's criterion, those first whose joining adds least to the
squared distances from the means, until as many clusters are left; each is stored as its mean, scaled to
length 1 (Clavié et al. 2024, hierarchical pooling). A long text is pooled in runs of `RUN` tokens, so that
memory and time grow with its length alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from index.compiled import compiled
from models.representations import Float32, Int64, TokenVectors, offsets_of

RUN = 512  # tokens whose distances are compared with each other


def pooled(vectors: TokenVectors, factor: int) -> TokenVectors:
    """Of every text the means of its clusters, one for `factor` tokens or a part of so many.

    vectors: of length 1, of a text float32[L, C], of which float32[⌈L / factor⌉, C] are left, and up to one
    more for each `RUN`; in the order of each cluster's first token.
    """
    if factor == 1:
        return vectors
    offsets = np.ascontiguousarray(vectors.offsets)
    lengths = np.diff(offsets)
    whole, rest = np.divmod(lengths, RUN)
    starts = offsets_of(whole * -(-RUN // factor) + -(-rest // factor))
    found = np.empty((int(starts[-1]), vectors.vectors.shape[1]), np.float32)
    _pool(np.ascontiguousarray(vectors.vectors, np.float32), offsets, starts, factor, found)
    return TokenVectors(found, starts)


@compiled(nogil=True)
def _pool(vectors: Float32, offsets: Int64, starts: Int64, factor: int, found: Float32) -> None:
    distances = np.empty((RUN, RUN), np.float32)
    for text in range(len(offsets) - 1):
        place = starts[text]
        for first in range(offsets[text], offsets[text + 1], RUN):
            run = vectors[first : min(first + RUN, offsets[text + 1])]
            wanted = -(-len(run) // factor)
            clusters = _clusters(run, wanted, distances)
            _write_means(run, clusters, found[place : place + wanted])
            place += wanted


@compiled(nogil=True, fastmath=True)
def _set_distances(vectors: Float32, distances: Float32) -> None:
    """What joining two tokens adds to the squared distances from means: half of their squared distance."""
    for one in range(len(vectors)):
        for other in range(one):
            total = np.float32(0)
            for value in range(vectors.shape[1]):
                difference = vectors[one, value] - vectors[other, value]
                total += difference * difference
            distances[one, other] = distances[other, one] = total / 2


@compiled(nogil=True)
def _clusters(vectors: Float32, wanted: int, distances: Float32) -> Any:
    """The cluster of each token, named by its first one: int64[L].

    Lance and Williams's recurrence for Ward's criterion; each cluster knows the nearest of those behind it.
    """
    count = len(vectors)
    _set_distances(vectors, distances)
    sizes = np.ones(count, np.float32)
    alive = np.ones(count, np.bool_)
    member_of = np.arange(count)
    nearest = np.zeros(count, np.int64)
    least = np.full(count, np.inf, np.float32)
    for one in range(count - 1):
        _look_behind(one, alive, distances, nearest, least)
    for _ in range(count - wanted):
        one = int(np.argmin(least))
        other = nearest[one]
        joined = distances[one, other]
        alive[other] = False
        least[other] = np.inf
        for third in range(count):
            if member_of[third] == other:
                member_of[third] = one
            if not alive[third] or third == one:
                continue
            both = sizes[one] + sizes[other] + sizes[third]
            distance = (
                (sizes[third] + sizes[one]) * distances[third, one]
                + (sizes[third] + sizes[other]) * distances[third, other]
                - sizes[third] * joined
            ) / both
            distances[third, one] = distances[one, third] = distance
        sizes[one] += sizes[other]
        for third in range(count):
            if not alive[third]:
                continue
            if third == one or (third < other and (nearest[third] == other or nearest[third] == one)):
                _look_behind(third, alive, distances, nearest, least)
            elif third < one and distances[third, one] < least[third]:
                nearest[third], least[third] = one, distances[third, one]
    return member_of


@compiled(nogil=True)
def _look_behind(one: int, alive: Any, distances: Float32, nearest: Int64, least: Float32) -> None:
    """Finds the nearest of the clusters behind one."""
    least[one] = np.inf
    for other in range(one + 1, len(alive)):
        if alive[other] and distances[one, other] < least[one]:
            nearest[one], least[one] = other, distances[one, other]


@compiled(nogil=True)
def _write_means(vectors: Float32, clusters: Int64, means: Float32) -> None:
    """Writes the mean of each cluster, scaled to length 1; where that is 0, its first vector."""
    places = np.empty(len(vectors), np.int64)
    count = 0
    for token in range(len(vectors)):
        if clusters[token] == token:
            places[token] = count
            means[count] = vectors[token]
            count += 1
        else:
            means[places[clusters[token]]] += vectors[token]
    for token in range(len(vectors)):
        if clusters[token] != token:
            continue
        mean = means[places[token]]
        length = np.sqrt((mean * mean).sum())
        means[places[token]] = mean / length if length > 1e-6 else vectors[token]
