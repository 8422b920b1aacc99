"""Damaged inputs of the kernels of inverted indexes and of BM25's terms."""

from __future__ import annotations

from typing import Any

import numpy as np

from tercet.index.files.memory_arrays import MemoryArrays
from tercet.index.files.packed_bytes import PackedBytes
from tercet.index.native.kernels import find_beginnings
from tercet.index.sparse.inverted_index import DTYPES, build_inverted
from tercet.models.representations import SparseRows
from tests.index.native.damage import Random, Records, Stored, Target

VOCABULARY, TERMS, MOST = 12, 4, 60


def _rows(random: Random) -> SparseRows:
    chosen = random.random((random.integers(1, MOST), VOCABULARY)) < random.random(VOCABULARY)
    token_ids = np.nonzero(chosen)[1].astype(np.int32)
    indptr = np.append(0, np.cumsum(chosen.sum(axis=1)))
    return SparseRows(indptr, token_ids, random.random(len(token_ids), np.float32) + np.float32(0.01))


def _index(random: Random) -> tuple[Any, ...]:
    rows, arrays = _rows(random), MemoryArrays()
    build_inverted(rows, VOCABULARY, arrays)
    width = max(1, len(rows))
    stored = [
        Stored(np.array(arrays.open(f"inverted_{name}", dtype, (width,) if name == "columns" else ())))
        for name, dtype in DTYPES.items()
    ]
    lengths = Stored(np.full(len(rows), 9, np.int32)) if random.random() < 0.5 else None
    return (*stored, *map(Stored, (rows.indptr, rows.token_ids, rows.weights)), lengths)


def _indexes(random: Random) -> Records:
    return Records("inverted_index", tuple(_index(random) for _ in range(2)))


def _terms(random: Random) -> Any:
    drawn = np.sort(random.choice(VOCABULARY, TERMS, replace=False)).astype(np.int32)
    return np.repeat(drawn[None], 2, axis=0)


def _weights(random: Random) -> Any:
    return random.random(TERMS, np.float32) + np.float32(0.1)


def _quantize(random: Random) -> tuple[Any, ...]:
    empty = np.zeros((2, TERMS), np.int64), np.zeros((2, TERMS), np.uint16)
    return _indexes(random), _terms(random), _weights(random), np.ones(2), *empty


def _find(random: Random) -> tuple[Any, ...]:
    """The places that an undamaged directory gives, or any others."""
    indexes = _indexes(random)
    places = np.array(
        [random.integers(-1, max(1, len(record[0].array)), TERMS) for record in indexes.records], np.int64
    )
    masks = tuple(
        (random.random(len(record[9].array) - 1) < 0.7 if random.random() < 0.5 else None,)
        for record in indexes.records
    )
    multipliers = random.integers(0, 60_000, (2, TERMS)).astype(np.uint16)
    k, slack, narrow = int(random.integers(1, 9)), int(random.integers(0, 60)), int(random.integers(2))
    progress = np.array([random.integers(1, 300), 0])
    masked = Records("mask", masks)
    return indexes, places, multipliers, slack, np.ones(2), k, masked, 0, 2, progress, narrow, 0.5


def _sought(random: Random) -> tuple[Any, ...]:
    indexes = _indexes(random)
    segments = np.sort(random.integers(0, 2, 7))
    counts = np.array([len(record[9].array) - 1 for record in indexes.records])
    rows = random.integers(0, counts[segments])
    return indexes, _terms(random), _weights(random), 0.5, 0.1, segments, rows


def _candidates(random: Random) -> tuple[Any, ...]:
    return *_sought(random), random.integers(0, 1000, 7), 0.01, int(random.integers(1, 9))


def _score_rows(random: Random) -> tuple[Any, ...]:
    rows = _rows(random)
    wanted = random.integers(0, len(rows), 5)
    stored = map(Stored, (rows.indptr, rows.token_ids, rows.weights))
    return *stored, wanted, _terms(random)[0], _weights(random)


def _count(random: Random) -> tuple[Any, ...]:
    rows = _rows(random)
    stored = map(Stored, (rows.indptr, rows.token_ids, rows.weights))
    return *stored, 0, len(rows), np.zeros(VOCABULARY, np.int64), np.zeros(VOCABULARY, np.float32)


def _fill(random: Random) -> tuple[Any, ...]:
    rows = _rows(random)
    counts = np.bincount(rows.token_ids, minlength=VOCABULARY).astype(np.int64)
    postings = int(counts.sum())
    zeros = [Stored(np.zeros(VOCABULARY, np.int64)) for _ in range(3)]
    return (
        *map(Stored, (rows.indptr, rows.token_ids, rows.weights)),
        0,
        Stored(counts),
        Stored(np.ones(VOCABULARY, np.float32)),
        *zeros,
        np.zeros(VOCABULARY, np.int32),
        np.zeros(VOCABULARY + 1, np.int64),
        np.zeros(VOCABULARY, np.int32),
        np.zeros(postings, np.uint16),
        np.zeros(postings, np.uint8),
        np.zeros((VOCABULARY, len(rows)), np.uint8),
    )


def _words(random: Random, most: int = 40) -> PackedBytes:
    drawn = {bytes(random.integers(97, 100, random.integers(12), np.uint8)) for _ in range(most)}
    return PackedBytes.of(sorted(drawn))


def _find_terms(random: Random) -> tuple[Any, ...]:
    segments = [_words(random) for _ in range(2)]
    wanted = _words(random, 5)
    records = tuple(
        (
            Stored(each.data),
            Stored(each.offsets),
            Stored(find_beginnings(each.data, each.offsets)),
            Stored(np.ones(len(each), np.int32)),
        )
        for each in segments
    )
    places = np.zeros((2, len(wanted)), np.int32)
    return Records("terms", records), wanted.data, wanted.offsets, places, np.zeros(len(wanted), np.int64)


def _beginnings(random: Random) -> tuple[Any, ...]:
    words = _words(random)
    return Stored(words.data), Stored(words.offsets)


TARGETS = [
    Target("count_block", _count),
    Target("fill_block", _fill),
    Target("quantize_query", _quantize),
    Target("find_candidates", _find),
    Target("score_rows", _score_rows),
    Target("score_in_segments", _sought),
    Target("score_candidates", _candidates),
    Target("find_beginnings", _beginnings),
    Target("find_terms", _find_terms),
]
