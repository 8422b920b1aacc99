"""Documents in several windows: worked numbers, brute force, any batches and segments, what each hit says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tercet.index.candidates import CandidateLimits, Document, SearchResult, Weights, Window
from tercet.index.catalog.manifest import Manifest
from tercet.index.collection import Collection
from tercet.index.dense import index as dense
from tercet.index.dense import kinds
from tercet.index.documents.filters import parse_filter
from tercet.index.live.collection import LiveCollection
from tercet.index.scoring import packed_maxsim
from tercet.index.search import late_interaction
from tercet.index.verify import verify
from tercet.index.windows.store import DocumentWindows
from tercet.models.representations import Representations
from tests.index.windows.conftest import Windowed

ALL = CandidateLimits(10_000, 10_000)


def described(result: SearchResult) -> list[Any]:
    return [(hit.document.id, hit.score, hit.scores, hit.window) for hit in result.hits]


def brute_force(corpus: Windowed, query: Representations) -> Any:
    """The exact sums of all documents from unrounded representations, and each window's own sum."""
    documents, encoded, windows = corpus
    assert encoded.dense is not None
    assert encoded.sparse is not None
    assert encoded.colbert is not None
    assert query.dense is not None
    assert query.sparse is not None
    assert query.colbert is not None
    wanted = dict(zip(*query.sparse.row(0), strict=True))
    dense_products = encoded.dense @ query.dense[0]
    lexical = [
        {t: w * wanted.get(t, 0) for t, w in zip(*encoded.sparse.row(row), strict=True)}
        for row in range(len(encoded))
    ]
    tokens = [encoded.colbert.row(row) for row in range(len(encoded))]
    late = np.array(
        [(query.colbert.row(0) @ v.T).max(axis=1).mean() if len(v) else 0 for v in tokens], np.float64
    )
    own = dense_products + np.array([sum(terms.values()) for terms in lexical]) + late
    sums = {}
    for row, document in enumerate(documents):
        span = slice(int(windows.offsets[row]), int(windows.offsets[row + 1]))
        terms: dict[int, float] = {}
        for each in lexical[span]:
            terms = {t: max(terms.get(t, 0), each.get(t, 0)) for t in terms.keys() | each.keys()}
        sums[document.id] = dense_products[span].max() + sum(terms.values()) + late[span].max()
    return sums, own


def test_the_best_window_and_the_largest_weights_count(
    build_windowed: Any, two: Windowed, three_query: Any
) -> None:
    snapshot = build_windowed(two, token_codec="float16").snapshot()
    book, note = snapshot.search(three_query).hits
    assert (book.document, book.score) == (two[0][0], 3.5)
    assert (book.scores.dense, book.scores.sparse, book.scores.colbert) == (1.0, 2.0, 0.5)
    assert (note.document.id, note.score) == ("note", 0.75)
    assert snapshot.documents == 2


@pytest.mark.parametrize(
    ("weights", "chosen"),
    [(Weights(), 2), (Weights(1, 0, 0), 1), (Weights(0, 1, 0), 2), (Weights(0, 0, 1), 0)],
)
def test_a_hit_names_the_window_of_highest_sum(
    build_windowed: Any, two: Windowed, three_query: Any, weights: Weights, chosen: int
) -> None:
    """By token vectors alone the three are equal, so the first is named. The note shares no word."""
    hits = build_windowed(two, token_codec="float16").snapshot().search(three_query, weights=weights).hits
    windows = {hit.document.id: hit.window for hit in hits}
    expected = {"book": Window(chosen, *((0, 4), (4, 8), (8, 13))[chosen]), "note": Window(0, 0, 4)}
    if weights == Weights(0, 1, 0):
        del expected["note"]
    assert windows == expected


def test_bm25_goes_with_windows(
    build_windowed: Any, windows_between: Any, two: Windowed, three_query: Any, root: Path
) -> None:
    """Its words are of the whole document, however many batches that comes in; it favours no window."""
    whole = build_windowed(two, "whole", token_codec="float16", bm25=True).snapshot()
    parts = build_windowed(two, "parts", batch=1, token_codec="float16", bm25=True).snapshot()
    assert verify(root, "parts") == []
    for snapshot in (whole, parts):
        (book,) = snapshot.search(
            three_query, text="three", weights=Weights(0, 0, 0, 1), candidates=CandidateLimits(0, 0, 5)
        ).hits
        assert (book.document.id, book.score) == ("book", book.scores.bm25)
        assert book.window == Window(2, 8, 13)
    both = (
        snapshot.search(three_query, text="three", weights=Weights(1, 1, 1, 1)) for snapshot in (whole, parts)
    )
    left, right = map(described, both)
    assert left == right


def test_explain_names_the_windows(build_windowed: Any, two: Windowed, three_query: Any) -> None:
    snapshot = build_windowed(two, token_codec="float16").snapshot()
    explanation = snapshot.explanations(three_query, ["book"])[0]
    assert explanation.terms.token_ids.tolist() == [1, 2]
    assert explanation.terms.products.tolist() == [1.0, 1.0]
    assert explanation.terms.windows.tolist() == [0, 2]
    assert explanation.alignment.window == Window(0, 0, 4)
    assert explanation.alignment.similarities.tolist() == [0, 1]
    alone = snapshot.explanations(three_query, ["note"])[0]
    assert alone.terms.windows.tolist() == []
    assert alone.alignment.window == Window(0, 0, 4)


def test_without_token_vectors_the_other_sides_choose(
    build_windowed: Any, two: Windowed, three_query: Any
) -> None:
    snapshot = build_windowed(two, token_codec="none").snapshot()
    book = snapshot.search(three_query).hits[0]
    assert (book.score, book.scores.colbert, book.window) == (3.0, None, Window(2, 8, 13))
    assert snapshot.explanations(three_query, ["book"])[0].alignment.window is None


def test_sides_that_are_not_there_choose_no_window(
    build_windowed: Any, two: Windowed, three_query: Any
) -> None:
    """A weight counts only where query and collection have its side; without any, those that are there do."""
    snapshot = build_windowed(two, token_codec="none", bm25=True).snapshot()

    def chosen(query: Any, weights: Weights) -> Window | None:
        hits = snapshot.search(query, text="three", weights=weights, candidates=CandidateLimits(5, 5, 5)).hits
        return next(hit.window for hit in hits if hit.document.id == "book")

    assert chosen(three_query, Weights(1, 0, 1)) == Window(1, 4, 8)
    assert chosen(three_query, Weights(0, 0, 1, 1)) == Window(2, 8, 13)  # 1.5 of dense and sparse
    dense_alone = replace(three_query, sparse=None, colbert=None)
    assert chosen(dense_alone, Weights(0, 0, 0, 1)) == Window(1, 4, 8)
    nothing = replace(dense_alone, dense=None)
    assert chosen(nothing, Weights(0, 0, 0, 1)) is None


def test_finalists_are_compared_with_token_vectors_once(
    build_windowed: Any, two: Windowed, three_query: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four windows are scored exactly, however many of their documents become hits."""
    snapshot = build_windowed(two, token_codec="float16").snapshot()
    scored: list[int] = []

    def counted(query: Any, texts: Any) -> Any:
        scored.append(len(texts))
        return packed_maxsim(query, texts)

    monkeypatch.setattr(late_interaction, "packed_maxsim", counted)
    assert len(snapshot.search(three_query).hits) == 2
    assert sum(scored) == 4


@pytest.mark.parametrize("codec", ["int8", "float16"])
def test_search_equals_brute_force(
    build_windowed: Any, windowed_corpus: Any, random_texts: Any, codec: str
) -> None:
    corpus = windowed_corpus(80, 5)
    snapshot = build_windowed(corpus, token_codec=codec, segment=90).snapshot()
    for seed in range(4):
        query = random_texts(1, 100 + seed)
        expected, own = brute_force(corpus, query)
        result = snapshot.search(query, top_k=80, candidates=ALL)
        assert len(result.hits) == 80
        rows = {document.id: row for row, document in enumerate(corpus[0])}
        for hit in result.hits:
            assert hit.score == pytest.approx(expected[hit.document.id], abs=0.02)
            first, last = corpus[2].offsets[rows[hit.document.id] : rows[hit.document.id] + 2]
            assert own[first + hit.window.index] == pytest.approx(own[first:last].max(), abs=0.02)
            assert (hit.window.start, hit.window.end) == (5 * hit.window.index, 5 * hit.window.index + 5)
        ids, scores = snapshot.score_all(query)
        sums = dict(zip(ids, scores.sum(axis=1).tolist(), strict=True))
        assert sums == pytest.approx({hit.document.id: hit.score for hit in result.hits}, abs=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("batch", [1, 4, 10_000])
@pytest.mark.parametrize("segment", [1, 30, 250_000])
def test_batches_and_segments_do_not_show(
    build_windowed: Any, windowed_corpus: Any, random_texts: Any, root: Path, batch: int, segment: int
) -> None:
    """Also where a document's windows come in several batches."""
    corpus = windowed_corpus(40, 3)
    one = build_windowed(corpus, "one").snapshot()
    collection = build_windowed(corpus, "parts", batch=batch, segment=segment)
    parts = collection.snapshot()
    assert verify(root, "parts") == []
    manifest = Manifest.read(collection.layout.manifest("000001"))
    assert sum(each.windows or 0 for each in manifest.segments) == len(corpus[1])
    assert {1: 40, 250_000: 1}.get(segment, len(manifest.segments)) == len(manifest.segments)
    for limits in (ALL, CandidateLimits(7, 3), CandidateLimits(5, 0)):
        for condition in (None, parse_filter({"lt": {"year": 2003}})):
            query = random_texts(1, 11)
            left, right = (
                snapshot.search(query, top_k=20, candidates=limits, filter=condition)
                for snapshot in (one, parts)
            )
            assert described(left) == described(right)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "shared"), [("flat", 1.0), ("hnsw", 0.95), ("ivfpq", 0.95), ("ivfrabitq", 0.95)]
)
def test_dense_retrieval_gives_as_many_documents_as_asked(
    build_windowed: Any,
    windowed_corpus: Any,
    random_texts: Any,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    shared: float,
) -> None:
    """However many windows belong to one, through graph and lists too; flat gives the very best."""
    monkeypatch.setattr(dense, "ROWS_PER_EF", 0)
    corpus = windowed_corpus(150, 7, most=20)
    assert len(corpus[1]) > kinds.SMALLEST_INDEX
    snapshot = build_windowed(corpus, dense_kind=kind).snapshot()
    vectors = corpus[1].dense.astype(np.float16).astype(np.float64)
    for seed in range(3):
        query = random_texts(1, 50 + seed)
        assert query.dense is not None
        best = np.maximum.reduceat(vectors @ query.dense[0].astype(np.float64), corpus[2].offsets[:-1])
        expected = [corpus[0][row].id for row in np.argsort(-best)]
        for limit in (1, 40, 150):
            hits = snapshot.search(
                query, top_k=limit, weights=Weights(1, 0, 0), candidates=CandidateLimits(limit, 0)
            ).hits
            found = {hit.document.id for hit in hits}
            assert len(hits) == limit
            assert len(found & set(expected[:limit])) >= shared * limit


def test_filters_leave_only_passing_documents(
    build_windowed: Any, windowed_corpus: Any, random_texts: Any
) -> None:
    corpus = windowed_corpus(50, 9)
    passing = {document.id for document in corpus[0] if document.metadata["year"] == 2003}
    hits = (
        build_windowed(corpus, segment=60)
        .snapshot()
        .search(random_texts(1, 4), top_k=50, candidates=ALL, filter=parse_filter({"eq": {"year": 2003}}))
        .hits
    )
    assert {hit.document.id for hit in hits} == passing


def test_a_document_of_many_windows_does_not_hide_others(build_windowed: Any, random_texts: Any) -> None:
    """The 500 windows of one document are all nearer to the query than the single one of another."""
    encoded = random_texts(502, 1)
    assert encoded.dense is not None
    encoded.dense[:501] = encoded.dense[0]
    documents = [Document(id, "x") for id in ("long", "near", "far")]
    offsets = np.array([0, 500, 501, 502], np.int64)
    corpus = documents, encoded, DocumentWindows(offsets, np.zeros((502, 2), np.int64))
    hits = (
        build_windowed(corpus)
        .snapshot()
        .search(encoded.take(np.array([0])), weights=Weights(1, 0, 0), candidates=CandidateLimits(2, 0))
        .hits
    )
    assert [hit.document.id for hit in hits] == ["long", "near"]


@pytest.mark.slow
@pytest.mark.parametrize("dense_kind", ["flat", "hnsw"])
def test_documents_of_one_window_are_found_as_without_windows(
    build_windowed: Any, random_corpus: Any, make_settings: Any, root: Path, dense_kind: str
) -> None:
    """The same hits and scores, through merges too; a hit also names its window."""
    documents, encoded = random_corpus(150, seed=5, repeat=4)
    fields = {"year": "integer"}
    whole = Collection.create(
        root, "whole", make_settings(encoded, "whole", dense_kind=dense_kind, fields=fields, lexical="idf")
    )
    with whole.writer() as writer:
        writer.add(documents, encoded)
        writer.publish()
    corpus = documents, encoded, DocumentWindows.whole(documents)
    windowed = build_windowed(corpus, dense_kind=dense_kind, lexical="idf", segment=5)
    with LiveCollection(windowed) as live:
        live.put(documents[:3], encoded.take(np.arange(3)))  # without windows: one each, all of the text
        live.flush()
        live.merge()  # what the background, which begins as the collection is opened, has not yet joined
        assert live.stats().segments < 30  # 150 documents in segments of 5
    found, expected = windowed.snapshot(), whole.snapshot()
    for row in range(0, 150, 10):
        query = encoded.take(np.array([row]))
        for condition in (None, parse_filter({"lt": {"year": 2004}})):
            asked = {"candidates": CandidateLimits(20, 20), "filter": condition}
            ours = found.search(query, **asked).hits
            texts = {hit.document.id: len(hit.document.text) for hit in ours}
            assert [hit.window for hit in ours] == [Window(0, 0, length) for length in texts.values()]
            assert [replace(hit, window=None) for hit in ours] == expected.search(query, **asked).hits
    as_whole = found.undivided()
    assert as_whole.settings == replace(expected.settings, name="demo")
    query = encoded.take(np.array([7]))
    assert as_whole.search(query).hits == expected.search(query).hits
