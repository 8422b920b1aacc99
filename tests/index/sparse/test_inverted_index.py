"""The inverted index finds exactly what scoring every row finds."""

import errno
import os
import tempfile
import threading
from pathlib import Path

import numpy as np
import numpy.typing as npt
import psutil
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tercet.index.documents.row_set import RowSet
from tercet.index.errors import DamagedIndexError, InvalidDocumentError
from tercet.index.files.array_folder import ArrayFolder
from tercet.index.search.lexical_search import LexicalSearch
from tercet.index.sparse.inverted_index import BLOCK, DTYPES, InvertedIndex, build_inverted
from tercet.index.sparse.query import LexicalQuery
from tercet.models.representations import SparseRows, offsets_of

VOCABULARY = 250_002


def rows_of(*rows: dict[int, float]) -> SparseRows:
    ids = [token for row in rows for token in sorted(row)]
    weights = [row[token] for row in rows for token in sorted(row)]
    lengths = np.array([len(row) for row in rows], np.int64)
    return SparseRows(offsets_of(lengths), np.array(ids, np.int32), np.array(weights, np.float32))


def random_rows(seed: int, documents: int, vocabulary: int, mean_length: int) -> SparseRows:
    """Zipf token ids, so that some terms become columns and most stay postings."""
    generator = np.random.default_rng(seed)
    shares = 1 / (np.arange(vocabulary) + 2.0)
    edges = np.cumsum(shares / shares.sum())
    lengths = generator.poisson(mean_length, documents)
    tokens = np.minimum(np.searchsorted(edges, generator.random(int(lengths.sum()))), vocabulary - 1)
    pairs = np.unique(np.repeat(np.arange(documents), lengths) * vocabulary + tokens)
    counts = np.bincount(pairs // vocabulary, minlength=documents)
    weights = generator.gamma(2, 0.1, len(pairs)).astype(np.float32) + np.float32(1e-6)
    return SparseRows(offsets_of(counts), (pairs % vocabulary).astype(np.int32), weights)


def opened(rows: SparseRows, folder: Path, vocabulary: int = VOCABULARY) -> InvertedIndex:
    fresh = Path(tempfile.mkdtemp(dir=folder))
    build_inverted(rows, vocabulary, ArrayFolder(fresh))
    return InvertedIndex.open(ArrayFolder(fresh), rows)


def search_index(
    index: InvertedIndex,
    token_ids: npt.NDArray[np.int32],
    weights: npt.NDArray[np.float32],
    k: int,
    allowed: RowSet | None = None,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """Rows and scores of the k best documents of one index, and of all that tie with the last."""
    search = LexicalSearch([index], LexicalQuery.of(token_ids, weights, 1), k, [allowed])
    _, rows, scores = search.best([search.find(0, 1)])
    return rows, scores


def scores_of(
    rows: SparseRows, token_ids: npt.NDArray[np.int32], weights: npt.NDArray[np.float32]
) -> npt.NDArray[np.float32]:
    """Every row's score: products added in float64 by ascending token id."""
    dense = np.zeros(max(VOCABULARY, int(token_ids.max(initial=0)) + 1), np.float64)
    np.add.at(dense, token_ids, weights.astype(np.float64))
    products = dense[rows.token_ids] * rows.weights
    documents = np.repeat(np.arange(len(rows)), np.diff(rows.indptr))
    return np.bincount(documents, products, len(rows)).astype(np.float32)


def assert_exact(
    index: InvertedIndex,
    rows: SparseRows,
    token_ids: npt.NDArray[np.int32],
    weights: npt.NDArray[np.float32],
    k: int,
    allowed: npt.NDArray[np.bool_] | None = None,
) -> None:
    scores = scores_of(rows, token_ids, weights)
    if allowed is not None:
        scores[~allowed] = 0
    positive = np.sort(scores[scores > 0])[::-1]
    threshold = positive[min(k, len(positive)) - 1] if k and len(positive) else np.inf
    expected = np.flatnonzero((scores >= threshold) & (scores > 0))
    expected = expected[np.lexsort((expected, -scores[expected]))]
    among = None if allowed is None else RowSet.of_mask(allowed)
    found, found_scores = search_index(index, token_ids, weights, k, among)
    assert found.dtype == np.int64
    assert found_scores.dtype == np.float32
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(found_scores, scores[expected])


def int32(*values: int) -> npt.NDArray[np.int32]:
    return np.array(values, np.int32)


def float32(*values: float) -> npt.NDArray[np.float32]:
    return np.array(values, np.float32)


def test_three_documents(tmp_path: Path) -> None:
    rows = rows_of({5: 0.5, 9: 1.0}, {9: 2.0}, {7: 1.0})
    found, scores = search_index(opened(rows, tmp_path), int32(5, 9), float32(2.0, 0.25), 10)
    assert found.tolist() == [0, 1]
    assert scores.tolist() == [1.25, 0.5]


def test_layout_of_three_documents(tmp_path: Path) -> None:
    build_inverted(rows_of({5: 0.5, 9: 1.0}, {9: 2.0}, {7: 1.0}), VOCABULARY, ArrayFolder(tmp_path))
    stored = {name: np.load(tmp_path / f"inverted_{name}.npy") for name in DTYPES}
    assert stored["terms"].tolist() == [5, 7, 9]
    assert stored["largest"].tolist() == [0.5, 1.0, 2.0]
    assert stored["columns"].tolist() == [[255, 0, 0], [0, 0, 255], [128, 255, 0]]


def test_bounds_that_round_up_in_every_term_hide_no_better_document(tmp_path: Path) -> None:
    """Sixty terms of which some document, 5980 in all, has 255, so that impacts are whole weights, and
    multipliers 1095, or 4.277 times 256. The best document has 100 of fifty-nine and 101 of one, 6001 in all;
    the next a little more than 100 of each, which counts as 101: 5 a term more, 295 in all, of which the
    rounding of impacts explains 257.
    """
    terms = range(60)
    best = {term: 100.0 + (term == 0) for term in terms}
    following = dict.fromkeys(terms, 100 + 2**-10)
    largest = [{term: 255.0 if term // 20 == part else 22.0 for term in terms} for part in range(3)]
    rows = rows_of(best, following, *largest)
    found, scores = search_index(opened(rows, tmp_path), int32(*terms), np.ones(60, np.float32), 1)
    assert found.tolist() == [0]
    assert scores.tolist() == [6001.0]


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_random_collections_are_exact(data: st.DataObject, tmp_path: Path) -> None:
    weight = st.floats(2.0**-100, 2.0**100, width=32) | st.sampled_from([0.25, 0.5, 1.0])
    row = st.dictionaries(st.integers(0, 30), weight, max_size=8)
    rows = rows_of(*data.draw(st.lists(row, max_size=40)))
    index = opened(rows, tmp_path, 31)
    query = data.draw(
        st.dictionaries(st.integers(0, 40), st.floats(2.0**-13, 2.0**13, width=32), min_size=1, max_size=12)
    )
    token_ids, weights = int32(*sorted(query)), float32(*(query[id] for id in sorted(query)))
    allowed = np.array(data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows))), np.bool_)
    k = data.draw(st.integers(1, 50))
    assert_exact(index, rows, token_ids, weights, k)
    assert_exact(index, rows, token_ids, weights, k, allowed)


@pytest.fixture(scope="module")
def blocks(tmp_path_factory: pytest.TempPathFactory) -> tuple[SparseRows, InvertedIndex]:
    """Two blocks and a part of a third."""
    rows = random_rows(1, 2 * BLOCK + 5_000, 20_000, 12)
    return rows, opened(rows, tmp_path_factory.mktemp("blocks"), 20_000)


@pytest.mark.slow
@pytest.mark.parametrize("k", [1, 10, 200, 5_000, 100_000])
def test_several_blocks_are_exact(blocks: tuple[SparseRows, InvertedIndex], k: int) -> None:
    rows, index = blocks
    generator = np.random.default_rng(k)
    for terms in (1, 3, 12):
        token_ids = np.unique(generator.zipf(1.3, terms) % 20_000).astype(np.int32)
        weights = generator.gamma(2, 0.1, len(token_ids)).astype(np.float32)
        assert_exact(index, rows, token_ids, weights, k)
        for share in (0.6, 0.01, 0.0):
            allowed = generator.random(len(rows)) < share
            assert_exact(index, rows, token_ids, weights, k, allowed)


@pytest.mark.parametrize("terms", [64, 65, 1_000, 20_000])
@pytest.mark.parametrize("scale", [1e-20, 1.0, 1e30])
def test_long_queries_never_overflow(
    blocks: tuple[SparseRows, InvertedIndex], terms: int, scale: float
) -> None:
    rows, index = blocks
    generator = np.random.default_rng(terms)
    token_ids = np.sort(generator.choice(20_000, terms, replace=False)).astype(np.int32)
    weights = (generator.gamma(0.5, 1, terms) * scale + scale * 1e-6).astype(np.float32)
    assert_exact(index, rows, token_ids, weights, 50)


def test_one_dominating_weight(blocks: tuple[SparseRows, InvertedIndex]) -> None:
    rows, index = blocks
    assert_exact(index, rows, int32(3, 40, 19_000), float32(1e-10, 1.0, 1e10), 500)


def test_sums_past_float32_stay_finite(tmp_path: Path) -> None:
    index = opened(rows_of({1: 3e38}, {1: 1.0}), tmp_path)
    found, scores = search_index(index, int32(1), float32(3e38), 1)
    assert found.tolist() == [0]
    assert np.isfinite(scores).all()


def test_all_ties_with_the_last_are_returned(tmp_path: Path) -> None:
    rows = rows_of({4: 2.0}, *({4: 1.0, 8: 0.5} for _ in range(2_000)), {4: 1.0})
    found, scores = search_index(opened(rows, tmp_path), int32(4, 8), float32(1.0, 1.0), 2)
    assert found.tolist() == list(range(2_001))
    assert set(scores.tolist()) == {2.0, 1.5}


def test_equal_rows_score_equal_in_any_segment(tmp_path: Path) -> None:
    generator = np.random.default_rng(2)
    row = dict(zip(range(100), generator.random(100).astype(np.float32).tolist(), strict=True))
    query_ids, weights = np.arange(100, dtype=np.int32), generator.random(100).astype(np.float32)
    others = [{token: 9.0 * (token + 1)} for token in range(100)]
    scores = []
    for place, rows in enumerate((rows_of(row), rows_of(*others, row), rows_of(row, row, *others))):
        folder = tmp_path / str(place)
        folder.mkdir()
        found, found_scores = search_index(opened(rows, folder), query_ids, weights, 1_000)
        wanted = [i for i in range(len(rows)) if len(rows.row(i)[0]) == 100]
        scores += found_scores[np.isin(found, wanted)].tolist()
    assert len(scores) == 4
    assert len(set(scores)) == 1


def test_unknown_terms_find_nothing(tmp_path: Path) -> None:
    found, scores = search_index(
        opened(rows_of({5: 0.5}, {}), tmp_path), int32(12, 249_999), float32(1.0, 1.0), 10
    )
    assert (found.tolist(), scores.tolist()) == ([], [])


@pytest.mark.parametrize("rows", [rows_of(), rows_of({}, {})], ids=["no documents", "empty rows"])
def test_empty_index(tmp_path: Path, rows: SparseRows) -> None:
    found, _ = search_index(opened(rows, tmp_path), int32(1), float32(1.0), 3)
    assert len(found) == 0


@pytest.mark.parametrize(
    ("token_ids", "weights"),
    [([3, 2], [1, 1]), ([2, 2], [1, 1]), ([-1], [1]), ([10], [1]), ([1], [0]), ([1], [float("nan")])],
)
def test_bad_rows_stop_the_build(tmp_path: Path, token_ids: list[int], weights: list[float]) -> None:
    indptr = np.array([0, 0, len(token_ids)], np.int64)
    with pytest.raises(InvalidDocumentError, match="document row 1"):
        build_inverted(SparseRows(indptr, int32(*token_ids), float32(*weights)), 10, tmp_path)


def test_missing_file_is_named(tmp_path: Path) -> None:
    rows = rows_of({5: 0.5})
    build_inverted(rows, VOCABULARY, ArrayFolder(tmp_path))
    (tmp_path / "inverted_impacts.npy").unlink()
    with pytest.raises(DamagedIndexError, match="inverted_impacts"):
        InvertedIndex.open(ArrayFolder(tmp_path), rows)


def test_a_full_disk_is_an_error_before_anything_is_written_through_a_map(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int, offset: int, length: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(OSError, match="No space left"):
        build_inverted(rows_of({5: 0.5}), VOCABULARY, ArrayFolder(tmp_path))


def test_files_of_another_build_are_refused(tmp_path: Path) -> None:
    rows = rows_of({5: 0.5}, {5: 1.0})
    build_inverted(rows, VOCABULARY, ArrayFolder(tmp_path))
    np.save(tmp_path / "inverted_largest.npy", float32(1.0, 2.0))
    with pytest.raises(DamagedIndexError, match="do not belong together"):
        InvertedIndex.open(ArrayFolder(tmp_path), rows)


@pytest.mark.parametrize(
    ("name", "value"),
    [("terms", 5), ("largest", np.nan), ("largest", np.inf), ("largest", 0), ("largest", -1)],
)
def test_terms_and_weights_that_no_index_has_are_refused(tmp_path: Path, name: str, value: float) -> None:
    rows = rows_of({5: 0.5, 7: 1.0})
    build_inverted(rows, VOCABULARY, ArrayFolder(tmp_path))
    path = tmp_path / f"inverted_{name}.npy"
    damaged = np.load(path)
    damaged[1] = value
    np.save(path, damaged)
    with pytest.raises(DamagedIndexError, match=r"inverted_terms.npy does not ascend, or inverted_largest"):
        InvertedIndex.open(ArrayFolder(tmp_path), rows)


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [("term_entries", 1, 2**40), ("term_entries", 1, -1), ("entry_start", 1, 2**40), ("entry_column", 0, 9)],
)
def test_places_outside_are_refused_before_compiled_code_reads_them(
    tmp_path: Path, name: str, place: int, value: int
) -> None:
    rows = rows_of({5: 0.5, 7: 1.0}, {5: 1.0})
    build_inverted(rows, VOCABULARY, ArrayFolder(tmp_path))
    path = tmp_path / f"inverted_{name}.npy"
    damaged = np.load(path)
    damaged[place] = value
    np.save(path, damaged)
    with pytest.raises(DamagedIndexError, match="do not belong together"):
        InvertedIndex.open(ArrayFolder(tmp_path), rows)


def test_threads_get_the_answers_of_one_thread(blocks: tuple[SparseRows, InvertedIndex]) -> None:
    _, index = blocks
    queries = [np.arange(i, 60 + 5 * i, 5, dtype=np.int32) for i in range(8)]
    expected = [search_index(index, query, np.ones(len(query), np.float32), 100) for query in queries]
    wrong: list[int] = []

    def check(place: int) -> None:
        for _ in range(10):
            found = search_index(index, queries[place], np.ones(len(queries[place]), np.float32), 100)
            if not all(np.array_equal(a, b) for a, b in zip(found, expected[place], strict=True)):
                wrong.append(place)

    threads = [threading.Thread(target=check, args=(place,)) for place in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.slow
def test_opening_and_searching_adds_no_private_copy(tmp_path: Path) -> None:
    rows = random_rows(3, 60_000, 5_000, 60)
    build_inverted(rows, 5_000, ArrayFolder(tmp_path))
    for name, array in (("p", rows.indptr), ("t", rows.token_ids), ("w", rows.weights)):
        np.save(tmp_path / f"{name}.npy", array)
    mapped = SparseRows(*(np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in "ptw"))
    size = sum(path.stat().st_size for path in tmp_path.iterdir())
    search_index(
        InvertedIndex.open(ArrayFolder(tmp_path), mapped), int32(1), float32(1.0), 1
    )  # compiled code is loaded
    before = _private_bytes()
    index = InvertedIndex.open(ArrayFolder(tmp_path), mapped)
    for token in range(0, 4_000, 40):
        search_index(index, np.arange(token, token + 40, dtype=np.int32), np.ones(40, np.float32), 200)
    assert size > 32 << 20
    # Other tests of the same process leave threads and caches that take a little too.
    assert _private_bytes() - before < size // 4


def _private_bytes() -> int:
    """Anonymous memory of this process; pages of mapped files are not in it."""
    maps = psutil.Process().memory_maps(grouped=True)
    return sum(entry.anonymous for entry in maps)
