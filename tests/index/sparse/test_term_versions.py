"""Counts that follow writes: those of a count of the documents at each moment, whoever asks when."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tercet.index.sparse import term_versions
from tercet.index.sparse.term_statistics import TermStatistics
from tercet.index.sparse.term_totals import PLACES, TermChange, TermTotals
from tercet.index.sparse.term_versions import KEPT_CHANGES, TermVersion
from tercet.models.representations import Int64, SparseRows

VOCABULARY = 8
ALL = np.arange(VOCABULARY, dtype=np.int32)

Documents = list[dict[int, float]]


def rows(documents: Documents) -> SparseRows:
    lengths = np.cumsum([0, *map(len, documents)])
    return SparseRows(
        lengths,
        np.array([term for each in documents for term in sorted(each)], np.int32),
        np.array([each[term] for each in documents for term in sorted(each)], np.float32),
    )


def totals(documents: Documents) -> TermTotals:
    return TermTotals([TermStatistics.of(rows(documents), VOCABULARY)], VOCABULARY)


def read(version: TermVersion, documents: Documents) -> tuple[list[int], int, int]:
    found = version.read(ALL, lambda: totals(documents))
    assert found is not None
    frequencies, sums = found
    return frequencies.tolist(), sums.mass, sums.logs


def counted(documents: Documents) -> tuple[list[int], int, int]:
    fresh = totals(documents)
    return fresh.frequencies(ALL).tolist(), fresh.sums.mass, fresh.sums.logs


class Collection:
    """Documents by id, and the version that they are at."""

    def __init__(self) -> None:
        self.documents: dict[int, dict[int, float]] = {}
        self.version = TermVersion()

    def put(self, id: int, document: dict[int, float] | None) -> None:
        former = self.documents.pop(id, None)
        removed = () if former is None else (rows([former]),)
        added = rows([] if document is None else [document])
        self.version = self.version.after(lambda: TermChange(added, removed))
        if document is not None:
            self.documents[id] = document

    @property
    def texts(self) -> Documents:
        return list(self.documents.values())


def test_sums_by_hand() -> None:
    """Term 1 in two documents with 1.5 in all, term 2 in one with 0.5; masses are in millionths."""
    frequencies, mass, logs = counted([{1: 1.0}, {1: 0.5, 2: 0.5}])
    assert frequencies == [0, 2, 1, 0, 0, 0, 0, 0]
    assert mass == 2_000_000
    assert logs / 2**PLACES == pytest.approx(1_500_000 * math.log(2.5) + 500_000 * math.log(1.5))


weights = st.floats(0.001953125, 20_000, width=32)
texts = st.dictionaries(st.integers(0, VOCABULARY - 1), weights, max_size=VOCABULARY)


@pytest.mark.slow
@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.none() | texts, st.booleans()),
        min_size=1,
        max_size=30,
    )
)
def test_every_version_has_the_counts_of_its_documents(
    writes: list[tuple[int, dict[int, float] | None, bool]],
) -> None:
    collection = Collection()
    seen: list[tuple[TermVersion, Documents]] = []
    for id, document, asked in writes:
        collection.put(id, document)
        seen.append((collection.version, collection.texts))
        if asked:
            assert read(collection.version, collection.texts) == counted(collection.texts)
    for version, documents in seen:  # older ones, after newer ones were asked
        found = version.read(ALL, lambda documents=documents: totals(documents))
        if found is not None:
            assert (found[0].tolist(), found[1].mass, found[1].logs) == counted(documents)


def test_nothing_is_noted_before_anyone_asks() -> None:
    def unexpected() -> TermChange:
        raise AssertionError("a change was looked at")

    assert TermVersion().after(unexpected).read(ALL) is None


def test_a_version_of_many_writes_ago_is_not_known() -> None:
    collection = Collection()
    collection.put(0, {1: 1.0})
    first, texts = collection.version, collection.texts
    read(first, texts)
    for number in range(KEPT_CHANGES):
        collection.put(1, {number % VOCABULARY: 1.0})
    read(collection.version, collection.texts)
    assert read(first, texts) == counted(texts)  # by a hair
    collection.put(1, {})
    read(collection.version, collection.texts)
    assert first.read(ALL, lambda: totals(texts)) is None


def test_a_write_that_failed_leaves_no_trace() -> None:
    """Two versions follow one: the disk refused the first of them."""
    collection = Collection()
    collection.put(0, {1: 1.0})
    read(collection.version, collection.texts)
    before = collection.version
    collection.put(1, {2: 1.0})  # is not acknowledged
    collection.version = before
    del collection.documents[1]
    collection.put(1, {3: 1.0})
    assert read(collection.version, collection.texts) == counted(collection.texts)


@pytest.mark.parametrize("limit", ["PENDING_CHANGES", "PENDING_WEIGHTS"])
def test_writes_that_nobody_asks_about_are_counted_in_time(
    monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setattr(term_versions, limit, 5)
    collection, held = Collection(), []
    read(collection.version, [])
    for number in range(12):
        collection.put(number, {1: 1.0})
        held.append(sum(version._change is not None for version in _chain(collection.version)))
    assert max(held) <= 5
    assert read(collection.version, collection.texts) == counted(collection.texts)


def _chain(version: TermVersion | None) -> list[TermVersion]:
    found = []
    while version is not None:
        found.append(version)
        version = version._former
    return found


def test_sums_larger_than_64_bits_are_exact() -> None:
    masses: Int64 = np.full(3, 2**62, np.int64)
    statistics = TermStatistics(np.arange(3, dtype=np.int32), np.ones(3, np.int32), masses)
    assert TermTotals([statistics], 3).sums.mass == 3 * 2**62
