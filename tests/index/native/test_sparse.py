"""Every variant of the kernels gives what the formulas say, to the last bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tercet.index.files.memory_arrays import MemoryArrays
from tercet.index.native import kernels
from tercet.index.sparse.inverted_index import BLOCK, DTYPES, build_inverted
from tercet.models.representations import SparseRows

Kernels = dict[str, Callable[..., Any]]


@pytest.fixture(params=kernels.AVAILABLE_INSTRUCTIONS)
def variant(request: pytest.FixtureRequest) -> Kernels:
    """The kernels for one of the processor's variants."""
    return kernels.kernels_of(request.param)


def random_rows(documents: int, vocabulary: int, seed: int) -> SparseRows:
    """Terms from rare ones to one in every document."""
    random = np.random.default_rng(seed)
    chosen = random.random((documents, vocabulary)) < np.linspace(0, 1, vocabulary) ** 2
    token_ids = np.nonzero(chosen)[1].astype(np.int32)
    weights = (random.random(len(token_ids)) * 3 + 0.01).astype(np.float32)
    return SparseRows(np.append(0, np.cumsum(chosen.sum(axis=1))), token_ids, weights)


def record_of(rows: SparseRows, vocabulary: int) -> Any:
    arrays = MemoryArrays()
    build_inverted(rows, vocabulary, arrays)
    width = max(1, min(len(rows), BLOCK))
    stored = [
        arrays.open(f"inverted_{name}", dtype, (width,) if name == "columns" else ())
        for name, dtype in DTYPES.items()
    ]
    return kernels.inverted_index(*stored, rows.indptr, rows.token_ids, rows.weights, None)


def bounds_of(rows: SparseRows, terms: Any, multipliers: Any, vocabulary: int) -> Any:
    """Bounds of the formula: floor(impact · multiplier / 256) + 1, where 1 counts for columns everywhere."""
    largest, holding = np.zeros(vocabulary, np.float32), np.bincount(rows.token_ids, minlength=vocabulary)
    np.maximum.at(largest, rows.token_ids, rows.weights)
    bounds = np.zeros(len(rows), np.int64)
    for term, multiplier in zip(terms, multipliers, strict=True):
        impacts = np.zeros(len(rows), np.int64)
        for row in range(len(rows)):
            span = slice(rows.indptr[row], rows.indptr[row + 1])
            for weight in rows.weights[span][rows.token_ids[span] == term]:
                impacts[row] = np.ceil(255 * np.float64(weight) / np.float64(largest[term]))
        added = impacts * int(multiplier) // 256
        is_column = holding[term] * 8 > len(rows)
        bounds += added + 1 if is_column else np.where(impacts > 0, added + 1, 0)
    return bounds


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("filtered", [False, True])
def test_candidates_have_the_bounds_of_the_formula(variant: Kernels, narrow: bool, filtered: bool) -> None:
    rows, vocabulary = random_rows(300, 20, 1), 20
    terms = np.array([[1, 4, 9, 15, 19]], np.int32)
    places, multipliers = np.empty((1, 5), np.int64), np.empty((1, 5), np.uint16)
    records = (record_of(rows, vocabulary),)
    weights = np.array([1, 0.5, 2, 1, 0.25], np.float32)
    variant["quantize_query"](records, terms, weights, np.ones(1), places, multipliers)
    allowed = np.arange(300) % 3 != 0 if filtered else None
    found = variant["find_candidates"](
        records,
        places,
        multipliers,
        40,
        np.ones(1),
        300,
        (kernels.mask(allowed),),
        0,
        1,
        np.array([1, 0]),
        narrow,
        0.5,
    )
    largest = [rows.weights[rows.token_ids == term].max() for term in terms[0]]
    ranked = terms[0][np.argsort(weights * largest)]
    expected = bounds_of(rows, ranked, multipliers[0], vocabulary)
    wanted = np.flatnonzero(expected > 0 if allowed is None else (expected > 0) & allowed)
    order = np.argsort(found[1])
    assert found[1][order].tolist() == wanted.tolist()
    assert found[2][order].tolist() == expected[wanted].tolist()


@given(seed=st.integers(0, 1000), k=st.integers(1, 40))
def test_scores_are_those_of_the_formula_in_every_variant(seed: int, k: int) -> None:
    rows = random_rows(60, 12, seed)
    random = np.random.default_rng(seed)
    terms = np.sort(random.choice(12, 5, replace=False)).astype(np.int32)
    weights = random.random(5).astype(np.float32)
    expected = np.zeros(60)
    for row in range(60):
        for position in range(rows.indptr[row], rows.indptr[row + 1]):
            for place in np.flatnonzero(terms == rows.token_ids[position]):
                expected[row] += np.float64(weights[place]) * np.float64(rows.weights[position])
    everything = np.arange(60)
    record = (record_of(rows, 12),)
    for name in kernels.AVAILABLE_INSTRUCTIONS:
        variant = kernels.kernels_of(name)
        stored = (rows.indptr, rows.token_ids, rows.weights)
        alone = variant["score_rows"](*stored, everything, terms, weights)
        assert alone.tolist() == expected.tolist()
        query = (record, terms[None], weights, 0.0, 0.0, np.zeros(60, np.int64), everything)
        assert variant["score_in_segments"](*query).tolist() == expected.tolist()
        bounds = np.ceil(expected * 1000).astype(np.int64)
        kept, scores = variant["score_candidates"](*query, bounds, 0.001, k)
        narrow = expected.astype(np.float32)
        threshold = np.sort(narrow)[-k]
        assert kept.tolist() == np.flatnonzero((narrow >= threshold) & (narrow > 0)).tolist()
        assert scores[kept].tolist() == narrow[kept].tolist()


def test_blocks_of_kernels_are_as_long_as_those_of_the_format(variant: Kernels) -> None:
    """One term in the first and the last document of three blocks, each time in a posting."""
    documents = 2 * BLOCK + 50
    indptr = np.ones(documents + 1, np.int64)
    indptr[0], indptr[-1] = 0, 2
    rows = SparseRows(indptr, np.zeros(2, np.int32), np.array([1, 2], np.float32))
    places, multipliers = np.empty((1, 1), np.int64), np.empty((1, 1), np.uint16)
    records = (record_of(rows, 4),)
    arguments = (records, np.zeros((1, 1), np.int32), np.ones(1, np.float32), np.ones(1))
    unit, slack, narrow = variant["quantize_query"](*arguments, places, multipliers)
    masks, progress = (kernels.mask(None),), np.array([1, 0])
    found = variant["find_candidates"](
        records, places, multipliers, slack, np.ones(1), 5, masks, 0, 1, progress, narrow, 0.5
    )
    assert found[1].tolist() == [0, documents - 1]
    assert all(found[2] * unit >= [1, 2])
