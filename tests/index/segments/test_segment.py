"""Segments in memory and with deleted rows: the same answers as a segment of what is left."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tercet.index.candidates import CandidateLimits, DenseOptions, Weights
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.documents.filters import parse_filter
from tercet.index.search.segment_search import search_segment
from tercet.index.segments.checks import check_batch
from tercet.index.segments.rows import DocumentRows
from tercet.index.segments.segment import Segment
from tercet.index.snapshot import Snapshot
from tercet.index.windows.settings import WindowSettings
from tercet.models.representations import Int64

COUNT = 60
FIELDS = {"year": "integer", "tags": "keyword"}
LIMITS = CandidateLimits(12, 9, 7)
YEAR = parse_filter({"eq": {"year": 2003}})
CHANGES: list[dict[str, Any]] = [
    {},
    {"lexical": "idf"},
    {"bm25": True},
    {"token_codec": "float16"},
    {"token_codec": "none"},
]


@pytest.fixture
def corpus(random_corpus: Any, make_settings: Any) -> Any:
    """Stored rows of random documents, and the settings of their collection."""

    def make(**changes: Any) -> tuple[DocumentRows, CollectionSettings]:
        documents, encoded = random_corpus(COUNT, 4)
        settings = make_settings(encoded, "demo", fields=FIELDS, **changes)
        return check_batch(documents, encoded, settings), settings

    return make


@pytest.fixture
def windowed(windowed_corpus: Any, make_settings: Any) -> Any:
    """The same of documents with windows."""

    def make(**changes: Any) -> tuple[DocumentRows, CollectionSettings]:
        documents, encoded, windows = windowed_corpus(COUNT, 4)
        settings = make_settings(
            encoded, "demo", window=WindowSettings(16, 4), fields={"year": "integer"}, **changes
        )
        return check_batch(documents, encoded, settings, windows), settings

    return make


def answers(segments: list[Segment], settings: CollectionSettings, queries: Any) -> list[Any]:
    """Everything that some searches say, with and without filters, in order."""
    snapshot = Snapshot("000001", settings, segments)
    weights = [Weights(1, 1, 1 if settings.stores_token_vectors else 0)]
    if settings.bm25:
        weights.append(Weights(1, 1, 1, 1))
    found: list[Any] = [snapshot.documents]
    for row in range(len(queries)):
        query = queries.take(np.array([row]))
        for chosen in weights:
            for condition in (None, YEAR):
                hits = snapshot.search(
                    query, text="text 7 and 12", weights=chosen, candidates=LIMITS, filter=condition
                ).hits
                found.append([(hit.document, hit.score, hit.scores, hit.window) for hit in hits])
    ids, scores = snapshot.score_all(queries.take(np.array([0])), "text 7")
    order = np.argsort(ids)
    found.append((np.array(ids)[order].tolist(), scores[order].tolist()))
    return found


def some_rows(deleted: int) -> Int64:
    return np.sort(np.random.default_rng(deleted).permutation(COUNT)[:deleted])


@pytest.mark.slow
@pytest.mark.parametrize("deleted", [1, 10, 40, COUNT])
@pytest.mark.parametrize("changes", CHANGES, ids=str)
@pytest.mark.parametrize("kind", ["corpus", "windowed"])
def test_deleted_rows_leave_what_a_build_without_them_has(
    request: pytest.FixtureRequest, random_texts: Any, kind: str, changes: dict[str, Any], deleted: int
) -> None:
    rows, settings = request.getfixturevalue(kind)(**changes)
    whole = Segment.in_memory([rows], settings)
    gone = some_rows(deleted)
    left = np.setdiff1d(np.arange(COUNT), gone)
    rest = [Segment.in_memory([whole.take(left)], settings)] if len(left) else []
    marked = whole.without(gone[: deleted // 2]).without(gone[deleted // 2 :])
    queries = random_texts(6, 5)
    assert answers([marked], settings, queries) == answers(rest, settings, queries)
    assert marked.rows_kept().tolist() == left.tolist()
    # The first segment is as it was, and parts of it together answer as the whole.
    parts = [Segment.in_memory([rows.span(start, start + 20)], settings) for start in (0, 20, 40)]
    assert answers([whole], settings, queries) == answers(parts, settings, queries)


def test_the_dense_side_goes_on_where_its_best_are_all_deleted(corpus: Any, random_texts: Any) -> None:
    rows, settings = corpus()
    whole, query = Segment.in_memory([rows], settings), random_texts(1, 5).dense[0]
    best, _ = search_segment(whole, query, COUNT, None, DenseOptions())
    marked = whole.without(np.sort(best[:12]))  # of 60: too few for a search that looks for the others alone
    for k in (1, 5, COUNT):
        found, _ = search_segment(marked, query, k, None, DenseOptions())
        assert found[:k].tolist() == best[12 : 12 + k].tolist()


def test_a_deleted_document_is_not_found_by_its_id(corpus: Any) -> None:
    rows, settings = corpus()
    segment = Segment.in_memory([rows], settings)
    identifier = rows.ids[7]
    assert segment.find(identifier) == 7
    assert segment.without(np.array([7])).find(identifier) is None
    assert segment.find(b"unknown") is None


@pytest.mark.parametrize("changes", CHANGES, ids=str)
@pytest.mark.parametrize("kind", ["corpus", "windowed"])
def test_rows_come_back_as_they_were_stored(
    request: pytest.FixtureRequest, kind: str, changes: dict[str, Any]
) -> None:
    rows, settings = request.getfixturevalue(kind)(**changes)
    segment = Segment.in_memory([rows.span(0, 25), rows.span(25, COUNT)], settings)
    chosen = np.array([3, 40, 59])
    found = segment.take(chosen)
    for place, row in enumerate(chosen.tolist()):
        one, expected = found.span(place, place + 1), rows.span(row, row + 1)
        assert (one.ids[0], one.contents[0]) == (expected.ids[0], expected.contents[0])
        np.testing.assert_array_equal(one.dense, expected.dense)
        np.testing.assert_array_equal(one.sparse.token_ids, expected.sparse.token_ids)
        np.testing.assert_array_equal(one.sparse.weights, expected.sparse.weights)
        if expected.tokens is not None:
            assert one.tokens is not None
            np.testing.assert_array_equal(one.tokens.codes, expected.tokens.codes)
        if expected.windows is not None:
            assert one.windows is not None
            np.testing.assert_array_equal(one.windows.spans, expected.windows.spans)
