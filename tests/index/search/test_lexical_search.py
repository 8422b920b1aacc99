"""A lexical search over the indexes of many segments finds what scoring every document finds, with ties."""

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tercet.index.documents.row_set import RowSet
from tercet.index.files.array_folder import ArrayFolder
from tercet.index.files.memory_arrays import MemoryArrays
from tercet.index.native import kernels
from tercet.index.search import lexical_search
from tercet.index.search.lexical_search import LexicalSearch
from tercet.index.sparse.inverted_index import BLOCK, InvertedIndex, build_inverted
from tercet.index.sparse.query import LexicalQuery
from tercet.models.representations import SparseRows, offsets_of

VOCABULARY = 40


@pytest.fixture(params=kernels.AVAILABLE_INSTRUCTIONS)
def variant(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Searches by the kernels for one of the processor's variants."""
    for name in ("quantize_query", "find_candidates", "score_candidates"):
        monkeypatch.setattr(lexical_search, name, kernels.kernels_of(request.param)[name])


def rows_of(rows: list[dict[int, float]]) -> SparseRows:
    ids = [token for row in rows for token in sorted(row)]
    weights = [row[token] for row in rows for token in sorted(row)]
    lengths = np.array([len(row) for row in rows], np.int64)
    return SparseRows(offsets_of(lengths), np.array(ids, np.int32), np.array(weights, np.float32))


def index_of(rows: list[dict[int, float]]) -> InvertedIndex:
    arrays, forward = MemoryArrays(), rows_of(rows)
    build_inverted(forward, VOCABULARY, arrays)
    return InvertedIndex.open(arrays, forward)


def brute_force(
    parts: list[list[dict[int, float]]],
    query: dict[int, float],
    k: int,
    allowed: list[npt.NDArray[np.bool_] | None],
) -> dict[tuple[int, int], float]:
    """The k best documents and all that tie with the last, by segment and row, with their scores."""
    scores = {}
    for segment, rows in enumerate(parts):
        for row, weights in enumerate(rows):
            mask = allowed[segment]
            if mask is None or mask[row]:
                products = [
                    float(np.float32(query[token])) * float(np.float32(weights[token]))
                    for token in sorted(query.keys() & weights)
                ]
                scores[segment, row] = float(np.float32(sum(products)))
    positive = sorted((score for score in scores.values() if score > 0), reverse=True)
    lowest = positive[min(k, len(positive)) - 1] if positive else np.inf
    return {place: score for place, score in scores.items() if score >= lowest}


def found_in(
    indexes: list[InvertedIndex],
    query: dict[int, float],
    k: int,
    allowed: list[npt.NDArray[np.bool_] | None],
    sets: bool,
    edges: list[int],
) -> dict[tuple[int, int], float]:
    plain = LexicalQuery.of(
        np.array(sorted(query), np.int32),
        np.array([query[id] for id in sorted(query)], np.float32),
        len(indexes),
    )
    given = [mask if mask is None or not sets else RowSet.of_mask(mask) for mask in allowed]
    looked = LexicalSearch(indexes, plain, k, given)
    segments, rows, scores = looked.best([looked.find(first, last) for first, last in pairwise(edges)])
    assert (np.diff(scores) <= 0).all()
    np.testing.assert_array_equal(
        plain.sums(indexes, np.sort(segments), rows[np.argsort(segments, kind="stable")]).astype(np.float32),
        scores[np.argsort(segments, kind="stable")],
    )
    places = zip(segments.tolist(), rows.tolist(), strict=True)
    return dict(zip(places, scores.tolist(), strict=True))


@pytest.mark.slow
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_segments_are_searched_as_one(data: st.DataObject, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few distinct weights, so that many documents tie; segments of other largest weights, and empty ones."""
    monkeypatch.setattr(lexical_search, "DOCUMENTS_PER_ROW", data.draw(st.sampled_from([1, 4, 128])))
    scale = st.sampled_from([0.25, 1.0, 1.0, 8.0])
    weight = st.sampled_from([0.25, 0.5, 1.0])
    parts = []
    for _ in range(data.draw(st.integers(1, 5))):
        factor = data.draw(scale)
        row = st.dictionaries(
            st.integers(0, VOCABULARY - 1), weight.map(lambda w, f=factor: w * f), max_size=6
        )
        parts.append(data.draw(st.lists(row, max_size=12)))
    query = data.draw(st.dictionaries(st.integers(0, VOCABULARY - 1), weight, min_size=1, max_size=8))
    allowed: list[npt.NDArray[np.bool_] | None] = [
        data.draw(
            st.none()
            | st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)).map(
                lambda some: np.array(some, np.bool_)
            )
        )
        for rows in parts
    ]
    edges = sorted({0, len(parts), *data.draw(st.lists(st.integers(0, len(parts)), max_size=2))})
    k = data.draw(st.integers(1, 12))
    indexes = [index_of(rows) for rows in parts]
    expected = brute_force(parts, query, k, allowed)
    for sets in (False, True):
        assert found_in(indexes, query, k, allowed, sets, edges) == expected


def scores_of(rows: SparseRows, query: dict[int, float]) -> npt.NDArray[np.float32]:
    """Of every document, added up in float64 by ascending token id."""
    weights = np.zeros((len(rows), VOCABULARY), np.float32)
    weights[np.repeat(np.arange(len(rows)), np.diff(rows.indptr)), rows.token_ids] = rows.weights
    scores = np.zeros(len(rows))
    for token in sorted(query):
        scores += np.float64(np.float32(query[token])) * weights[:, token]
    return scores.astype(np.float32)


@pytest.mark.usefixtures("variant")
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32))
def test_what_is_skipped_is_not_among_the_best(seed: int) -> None:
    """Common terms weigh little, so that they are left out, as columns and as postings. Few distinct weights,
    copies and near copies, so that documents tie; deleted ones.
    """
    random = np.random.default_rng(seed)
    distinct, k = np.linspace(0.25, 2, random.integers(2, 200)), int(random.integers(1, 40))
    shares = random.permutation(np.geomspace(0.002, 0.9, VOCABULARY))
    lightness = 1 - random.uniform(0, 1) * shares
    parts = []
    for _ in range(random.integers(1, 4)):
        chosen = random.random((random.integers(0, 3_000), VOCABULARY)) < shares
        weights = np.where(chosen, random.choice(distinct, chosen.shape) * lightness, 0).astype(np.float32)
        copied = random.integers(0, max(1, len(weights)), len(weights) // 4)
        weights[: len(copied)] = weights[copied]
        weights[: len(copied) // 2, random.integers(VOCABULARY)] = 1
        row, token = np.nonzero(weights)
        indptr = np.searchsorted(row, np.arange(len(weights) + 1))
        parts.append(SparseRows(indptr, token.astype(np.int32), weights[row, token]))
    terms = np.sort(random.choice(VOCABULARY, random.integers(1, 15), replace=False))
    query = dict(zip(terms.tolist(), random.choice(distinct, len(terms)).tolist(), strict=True))
    allowed = [None if random.random() < 0.5 else random.random(len(rows)) < 0.7 for rows in parts]
    scores = [
        scores_of(rows, query) * (1 if some is None else some)
        for rows, some in zip(parts, allowed, strict=True)
    ]
    positive = np.sort(np.concatenate([some[some > 0] for some in scores]))[::-1]
    lowest = positive[min(k, len(positive)) - 1] if len(positive) else np.inf
    expected = {
        (segment, int(row)): float(some[row])
        for segment, some in enumerate(scores)
        for row in np.flatnonzero((some >= lowest) & (some > 0))
    }
    indexes = []
    for rows in parts:
        arrays = MemoryArrays()
        build_inverted(rows, VOCABULARY, arrays)
        indexes.append(InvertedIndex.open(arrays, rows))
    assert found_in(indexes, query, k, allowed, bool(random.integers(2)), [0, len(parts)]) == expected


@pytest.mark.usefixtures("variant")
def test_common_terms_are_read_where_they_may_matter() -> None:
    """Ten documents of the first segment score 1.1. In the second block of the second, a common term adds 0.1
    to many, and three have the rare one: its postings are read, and three impacts of the common one.
    """
    rare, both = {1: 1.0}, {1: 1.0, 2: 0.1}
    indexes = [
        index_of([both] * 10),
        index_of(
            [
                *({} for _ in range(BLOCK)),
                *({2: 0.1} if row % 400 != 7 else rare if row == 7 else both for row in range(1000)),
            ]
        ),
    ]
    plain = LexicalQuery.of(np.array([1, 2], np.int32), np.ones(2, np.float32), 2)
    looked = LexicalSearch(indexes, plain, 10, [None, None])
    first = looked.find(0, 1)
    read = looked.impacts_read
    segments, rows, _ = looked.best([first, looked.find(1, 2)])
    assert looked.impacts_read - read == 3 + 3
    assert rows[segments == 1].tolist() == [BLOCK + 407, BLOCK + 807]


def test_later_segments_begin_with_the_floor_of_former_ones() -> None:
    """A thousand documents that lie far below ten of the first segment are not even proposed."""
    indexes = [index_of([{1: 1.0}] * 10), *(index_of([{1: 0.5, 2: 1.0}] * 100) for _ in range(10))]
    plain = LexicalQuery.of(np.array([1], np.int32), np.ones(1, np.float32), len(indexes))
    looked = LexicalSearch(indexes, plain, 10, [None] * len(indexes))
    assert [len(looked.find(place, place + 1)[0]) for place in range(len(indexes))] == [10, *[0] * 10]


def test_threads_that_share_a_floor_find_what_one_finds() -> None:
    """Each raises it while the others read it: what they propose may differ, but not what is the best."""
    random = np.random.default_rng(0)
    indexes = [
        index_of([{1: float(weight), 2: 1.0} for weight in random.random(200) * place + 0.01])
        for place in range(1, 17)
    ]
    plain = LexicalQuery.of(np.array([1, 2], np.int32), np.ones(2, np.float32), len(indexes))
    alone = LexicalSearch(indexes, plain, 7, [None] * len(indexes))
    expected = alone.best([alone.find(0, len(indexes))])
    with ThreadPoolExecutor(4) as pool:
        for _ in range(50):
            shared = LexicalSearch(indexes, plain, 7, [None] * len(indexes))
            starts = range(len(indexes))
            found = shared.best(list(pool.map(shared.find, starts, range(1, len(indexes) + 1))))
            assert [part.tolist() for part in found] == [part.tolist() for part in expected]


def test_a_segment_without_the_terms_and_one_with_a_great_weight() -> None:
    """The great weight makes the unit coarse: all others have nearly the same bound, and are told apart."""
    parts = [
        [{3: 1.0}],
        [{1: 1e6}],
        [{1: 1.0 + row / 64} for row in range(30)],
    ]
    query = {1: 1.0, 2: 1.0}
    everything: list[npt.NDArray[np.bool_] | None] = [None] * 3
    found = found_in([index_of(rows) for rows in parts], query, 5, everything, False, [0, 3])
    assert found == {(1, 0): 1e6, **{(2, row): 1.0 + row / 64 for row in range(26, 30)}}


def test_indexes_on_the_disk_stay_mapped_while_they_are_searched(tmp_path: Path) -> None:
    forward = rows_of([{1: 1.0}, {1: 2.0}])
    build_inverted(forward, VOCABULARY, ArrayFolder(tmp_path))
    plain = LexicalQuery.of(np.array([1], np.int32), np.ones(1, np.float32), 1)
    looked = LexicalSearch([InvertedIndex.open(ArrayFolder(tmp_path), forward)], plain, 1, [None])
    segments, rows, scores = looked.best([looked.find(0, 1)])
    assert (segments.tolist(), rows.tolist(), scores.tolist()) == ([0], [1], [2.0])
