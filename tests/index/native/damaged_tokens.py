"""Damaged inputs of `token_store.c`, `maxsim.c`, `centroids.c`, `codebook.c` and `pooling.c`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tercet.index.token_vectors.integer_query import IntegerQuery
from tercet.models.representations import offsets_of
from tests.index.native.damage import Random, Records, Stored, Target

PIECES, CENTROIDS, VALUES = 3, 5, 64
OTHER_GROUPS = 0.1  # of queries, with twice as many as their tokens need


def _store(random: Random, texts: int, width: int) -> tuple[Any, ...]:
    """A record of `token_store`; width: of pieces, 0 for int8."""
    offsets = offsets_of(random.integers(0, 12, texts))
    tokens = int(offsets[-1])
    codes = Stored(random.integers(0, 256, (tokens, PIECES if width else 10), np.uint8))
    scales, centroids = random.random(tokens, np.float32), random.integers(0, CENTROIDS, tokens, np.uint16)
    return codes, None if width else Stored(scales), Stored(centroids) if width else None, Stored(offsets)


def _texts(random: Random, width: int) -> tuple[Any, ...]:
    records = tuple(_store(random, 3, width) for _ in range(2))
    places, rows = random.integers(0, 2, 6), random.integers(0, 3, 6)
    offsets = [records[place][3].array for place in places.tolist()]
    starts, ends = (
        np.array([each[row + more] for each, row in zip(offsets, rows.tolist(), strict=True)])
        for more in (0, 1)
    )
    return Records("token_store", records), Stored(places), Stored(starts), Stored(ends)


def _codebook(random: Random, width: int) -> tuple[Any, Any]:
    centroids = random.integers(0, 128, (CENTROIDS, PIECES * width), np.uint8)
    return Stored(centroids), Stored(random.integers(0, 128, (PIECES, 256, width), np.uint8))


def _query(random: Random) -> tuple[Any, ...]:
    integers = IntegerQuery.of(random.standard_normal((random.integers(1, 20), 30)))
    packed, sums, scales, errors, vectors = integers.arguments
    groups = [packed, sums, scales]
    if random.random() < OTHER_GROUPS:
        groups = [np.concatenate([each, each]) for each in groups]
    return *(Stored(each) for each in (*groups, errors)), vectors


def _maxsim(random: Random) -> tuple[Any, ...]:
    width = int(random.choice([0, 2, 4, 8]))
    book = _codebook(random, width) if width else (None, None)
    return *_texts(random, width), *book, *_query(random)


def _spans(random: Random) -> tuple[Any, ...]:
    records = tuple(_store(random, 3, 2) for _ in range(2))
    places, rows = random.integers(0, 2, 6), random.integers(0, 3, 6)
    return Records("token_store", records), Stored(places), Stored(rows)


def _unpack(random: Random) -> tuple[Any, ...]:
    codes, scales = random.integers(-127, 128, (9, 7), np.int8), random.random(9, np.float32)
    return codes, Stored(scales), Stored(random.integers(0, 9, 5)), np.empty((5, 7), np.float32)


def _centroid_maxsim(random: Random) -> tuple[Any, ...]:
    lanes = 16 * int(random.integers(1, 5))
    values = random.integers(-(2**15), 2**15, (8, lanes), np.int16)
    return Stored(values), random.random(lanes), *_texts(random, 2)


def _decode(random: Random) -> tuple[Any, ...]:
    width, tokens = int(random.choice([2, 4, 8])), 6
    codes = Stored(random.integers(0, 256, (tokens, PIECES), np.uint8))
    nearest = Stored(random.integers(0, CENTROIDS, tokens, np.uint16))
    return codes, nearest, *_codebook(random, width), np.empty((tokens, PIECES * width), np.float32)


def _pool(random: Random) -> tuple[Any, ...]:
    lengths, factor, run = random.integers(0, 12, 4), int(random.integers(1, 5)), 5
    whole, rest = np.divmod(lengths, run)
    starts = offsets_of(whole * -(-run // factor) + -(-rest // factor))
    vectors = random.standard_normal((int(lengths.sum()), 3)).astype(np.float32)
    found = np.empty((int(starts[-1]), 3), np.float32)
    return Stored(vectors), Stored(offsets_of(lengths)), Stored(starts), factor, run, found


TARGETS = [
    Target("token_spans", _spans),
    Target("unpack_int8", _unpack),
    Target("near_maxsim", _maxsim),
    Target("exact_maxsim", _maxsim),
    Target("centroid_maxsim", _centroid_maxsim),
    Target("decode_pieces", _decode),
    Target("pool_tokens", _pool),
]
