"""Searches on snapshots: worked numbers, brute force, and the same answer from one segment or many."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tercet.index.bm25.query import Bm25Statistics
from tercet.index.candidates import CandidateLimits, Scores, SearchResult, Weights
from tercet.index.collection import Collection
from tercet.index.documents.filters import parse_filter
from tercet.index.errors import InvalidQueryError, SearchIndexError
from tercet.index.search import retrieval
from tercet.index.snapshot import Snapshot
from tercet.models.representations import Representations

ALL = CandidateLimits(10_000, 10_000)


def described(result: SearchResult) -> list[tuple[str, float, Scores]]:
    return [(hit.document.id, hit.score, hit.scores) for hit in result.hits]


def test_every_hit_has_all_three_scores_and_their_sum(build: Any, three: Any, three_query: Any) -> None:
    result = build(three, token_codec="float16").snapshot().search(three_query)
    assert described(result) == [
        ("c", 3.5, Scores(0.5, 2.5, 0.5)),
        ("a", 2.5, Scores(1.0, 1.0, 0.5)),
        ("b", 0.5, Scores(0.0, 0.0, 0.5)),
    ]
    assert result.snapshot == "000001"
    assert result.retrieve_seconds >= 0
    assert result.score_seconds >= 0


def test_hits_carry_their_documents(build: Any, three: Any, three_query: Any) -> None:
    hits = build(three).snapshot().search(three_query, top_k=3).hits
    assert {hit.document.id: hit.document for hit in hits} == {d.id: d for d in three[0]}


def test_a_side_that_did_not_retrieve_a_hit_is_computed(build: Any, three: Any, three_query: Any) -> None:
    snapshot = build(three).snapshot()
    only_sparse = snapshot.search(three_query, candidates=CandidateLimits(0, 1)).hits
    assert [(hit.document.id, hit.scores.dense) for hit in only_sparse] == [("c", 0.5)]
    only_dense = snapshot.search(three_query, candidates=CandidateLimits(1, 0)).hits
    assert [(hit.document.id, hit.scores.sparse) for hit in only_dense] == [("a", 1.0)]


def test_candidates_of_both_sides_have_both_scores(build: Any, three: Any, three_query: Any) -> None:
    found = build(three).snapshot().retrieve(three_query, candidates=CandidateLimits(1, 1))
    assert found.rows.tolist() == [0, 2]
    assert found.dense.tolist() == [1.0, 0.5]
    assert found.sparse.tolist() == [1.0, 2.5]


def test_weights_decide_the_order_and_zero_leaves_a_side_out(
    build: Any, three: Any, three_query: Any
) -> None:
    snapshot = build(three, token_codec="float16").snapshot()
    hits = snapshot.search(three_query, weights=Weights(1, 0, 0)).hits
    assert [(hit.document.id, hit.score) for hit in hits] == [("a", 1.0), ("c", 0.5)]  # b has 0
    assert all(hit.scores.colbert == 0.5 for hit in hits)  # reported all the same
    mldr = snapshot.search(three_query, weights=Weights(0.15, 0.5, 0.35), top_k=1).hits
    assert mldr[0].score == pytest.approx(0.15 * 0.5 + 0.5 * 2.5 + 0.35 * 0.5)


def test_a_dense_search_asks_no_other_side_which_could_find_nothing_better(
    build: Any, random_corpus: Any, random_texts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot, query, dense = build(random_corpus(300, 7)).snapshot(), random_texts(1, 8), Weights(1, 0, 0)
    asked: list[int] = []
    real = retrieval.LexicalSearch

    def noted(*arguments: Any) -> Any:
        asked.append(1)
        return real(*arguments)

    monkeypatch.setattr(retrieval, "LexicalSearch", noted)
    few, enough = CandidateLimits(9, 100), CandidateLimits(10, 100)
    hits = described(snapshot.search(query, weights=dense, candidates=enough))
    assert hits == described(snapshot.search(query, weights=dense, candidates=ALL))
    assert not asked
    assert hits[:9] == described(snapshot.search(query, weights=dense, candidates=few))[:9]
    assert len(asked) == 1
    for weights in (Weights(-1, 0, 0), Weights(1, 0, 0.1), Weights(1, 1e-6, 0)):
        snapshot.search(query, weights=weights, candidates=enough)
    assert len(asked) == 4
    third = hits[2][0]
    rest = described(
        snapshot.search(query, weights=dense, candidates=CandidateLimits(11, 100), without=[third])
    )
    assert [hit for hit in rest if hit in hits] == [hit for hit in hits if hit[0] != third]
    assert len(asked) == 4


@pytest.mark.parametrize("many", [10**9, 2**63 - 1, 10**19])
def test_more_than_there_are_gives_all(build: Any, three: Any, three_query: Any, many: int) -> None:
    snapshot = build(three).snapshot()
    hits = snapshot.search(three_query, top_k=many, candidates=CandidateLimits(many, many)).hits
    assert hits == snapshot.search(three_query).hits


def test_a_document_that_is_left_out_takes_no_place(build: Any, three: Any) -> None:
    snapshot = build(three).snapshot()
    query = snapshot.stored_query("a").representations
    for limits in (CandidateLimits(1, 0), CandidateLimits(2, 0)):
        hits = snapshot.search(query, top_k=1, candidates=limits, without=["a"]).hits
        assert [hit.document.id for hit in hits] == ["c"]


def test_codec_none_drops_the_colbert_side(build: Any, three: Any, three_query: Any) -> None:
    hits = build(three, token_codec="none").snapshot().search(three_query).hits
    assert [(h.document.id, h.score, h.scores.colbert) for h in hits] == [
        ("c", 3.0, None),
        ("a", 2.0, None),
    ]


def test_equal_scores_are_ordered_by_id(build: Any, random_corpus: Any, random_texts: Any) -> None:
    snapshot = build(random_corpus(40, 3, repeat=25), segment=7).snapshot()
    hits = snapshot.search(random_texts(1, 8), top_k=40, candidates=ALL).hits
    keys = [(-hit.score, hit.document.id) for hit in hits]
    assert len(keys) == 40
    assert keys == sorted(keys)
    assert len({score for score, _ in keys}) == 16  # the repeated document ties with itself 25 times


@pytest.mark.parametrize("codec", ["int8", "float16", "none"])
def test_search_equals_brute_force(build: Any, random_corpus: Any, random_texts: Any, codec: str) -> None:
    corpus = random_corpus(150, 5)
    snapshot = build(corpus, token_codec=codec, segment=64).snapshot()
    for seed in range(5):
        query = random_texts(1, 100 + seed)
        expected = brute_force(corpus[1], query, colbert=codec != "none")
        ids = [document.id for document in corpus[0]]
        hits = snapshot.search(query, top_k=150, candidates=ALL).hits
        assert len(hits) == 150
        for hit in hits:
            assert hit.score == pytest.approx(expected[ids.index(hit.document.id)], abs=0.02)
        assert [h.score for h in hits] == sorted((h.score for h in hits), reverse=True)


def brute_force(documents: Representations, query: Representations, *, colbert: bool) -> Any:
    """The sum of the three scores from unrounded representations, document by document."""
    assert documents.dense is not None
    assert documents.sparse is not None
    assert documents.colbert is not None
    assert query.dense is not None
    assert query.sparse is not None
    assert query.colbert is not None
    sums = documents.dense @ query.dense[0]
    wanted = dict(zip(*query.sparse.row(0), strict=True))
    for row in range(len(documents)):
        sums[row] += sum(
            weight * wanted.get(token, 0) for token, weight in zip(*documents.sparse.row(row), strict=True)
        )
        vectors = documents.colbert.row(row)
        if colbert and len(vectors) and len(query.colbert.row(0)):
            sums[row] += (query.colbert.row(0) @ vectors.T).max(axis=1).mean()
    return sums


@pytest.mark.slow
@settings(max_examples=16, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 10_000),
    segment=st.sampled_from([7, 20, 59]),
    lexical=st.sampled_from(["plain", "idf"]),
    limits=st.builds(CandidateLimits, st.integers(0, 30), st.integers(1, 30)),
    top_k=st.integers(1, 50),
)
def test_one_segment_answers_like_many(
    build: Any,
    random_corpus: Callable[..., Any],
    random_texts: Any,
    seed: int,
    segment: int,
    lexical: str,
    limits: CandidateLimits,
    top_k: int,
) -> None:
    corpus = random_corpus(60, seed, repeat=3)
    fixed = {"fields": {"year": "integer"}, "lexical": lexical}
    one = build(corpus, name=f"one-{lexical}", **fixed).snapshot()
    many = build(corpus, name=f"many-{lexical}", segment=segment, **fixed).snapshot()
    assert len(many._opened()) == -(-60 // segment)
    for condition in (None, parse_filter({"in": {"year": [2001, 2003]}})):
        for query in (random_texts(1, seed + 1), corpus[1].take(np.array([0]))):
            left, right = (
                snapshot.search(query, candidates=limits, top_k=top_k, filter=condition)
                for snapshot in (one, many)
            )
            assert described(left) == described(right)


def test_filters_apply_to_both_retrievers(build: Any, random_corpus: Any, random_texts: Any) -> None:
    fields = {"year": "integer", "tags": "keyword"}
    documents, encoded = random_corpus(200, 9)
    snapshot = build((documents, encoded), segment=70, fields=fields).snapshot()
    condition = parse_filter({"and": [{"gte": {"year": 2003}}, {"not": {"eq": {"tags": "two"}}}]})
    passing = {d.id for d in documents if d.metadata["year"] >= 2003 and "two" not in d.metadata["tags"]}
    hits = snapshot.search(random_texts(1, 4), top_k=200, candidates=ALL, filter=condition).hits
    assert {hit.document.id for hit in hits} == passing
    few = snapshot.search(random_texts(1, 4), top_k=3, candidates=CandidateLimits(5, 5), filter=condition)
    assert len(few.hits) == 3
    assert {hit.document.id for hit in few.hits} <= passing
    nothing = parse_filter({"eq": {"tags": "seven"}})
    assert snapshot.search(random_texts(1, 4), filter=nothing).hits == []


def test_score_all_gives_every_document(build: Any, three: Any, three_query: Any) -> None:
    ids, scores = build(three, segment=2).snapshot().score_all(three_query)
    assert ids == ["a", "b", "c"]
    assert scores.dtype == np.float32
    np.testing.assert_allclose(scores, [[1, 1, 0.5], [0, 0, 0.5], [0.5, 2.5, 0.5]], atol=1e-6)


def test_score_all_agrees_with_search(build: Any, random_corpus: Any, random_texts: Any) -> None:
    snapshot = build(random_corpus(90, 2), segment=40).snapshot()
    query = random_texts(1, 77)
    ids, components = snapshot.score_all(query)
    best = sorted(range(90), key=lambda place: (-components[place].astype(np.float64).sum(), ids[place]))[:20]
    hits = snapshot.search(query, top_k=20, candidates=ALL).hits
    assert [hit.document.id for hit in hits] == [ids[place] for place in best]


def test_get_finds_documents_by_id(build: Any, three: Any) -> None:
    snapshot = build(three, segment=2).snapshot()
    assert snapshot.get("c") == three[0][2]
    assert snapshot.get("d") is None
    assert snapshot.get("") is None
    assert snapshot.get("x" * 600) is None
    assert snapshot.get("\ud800") is None


def test_explain_shows_terms_and_alignment(build: Any, three: Any, three_query: Any) -> None:
    explanation = (
        build(three, segment=2, token_codec="float16").snapshot().explanations(three_query, ["c"])[0]
    )
    assert explanation.terms.token_ids.tolist() == [1, 2]
    assert explanation.terms.query_weights.tolist() == [2.0, 1.0]
    assert explanation.terms.idf.tolist() == [1.0, 1.0]  # the collection has none
    assert explanation.terms.document_weights.tolist() == [1.0, 0.5]
    assert explanation.terms.products.tolist() == [2.0, 0.5]  # together the sparse score, 2.5
    assert explanation.alignment.document_vectors.tolist() == [0, 0]
    assert explanation.alignment.similarities.tolist() == [0.5, 0.5]  # whose mean is the colbert score


def test_explain_names_an_unknown_document(build: Any, three: Any, three_query: Any) -> None:
    with pytest.raises(InvalidQueryError, match="'z' is not in snapshot 000001"):
        build(three).snapshot().explanations(three_query, ["z"])[0]


def test_many_threads_search_one_snapshot(build: Any, random_corpus: Any, random_texts: Any) -> None:
    snapshot = build(random_corpus(300, 6), segment=90).snapshot()
    queries = [random_texts(1, seed) for seed in range(12)]
    alone = [described(snapshot.search(query)) for query in queries]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda query: described(snapshot.search(query)), queries * 5))
    assert together == alone * 5


def test_an_empty_collection_answers_with_nothing(
    root: Any, three: Any, three_query: Any, make_settings: Any
) -> None:
    collection = Collection.create(root, "empty", make_settings(three[1], "empty"))
    snapshot = collection.snapshot()
    assert (snapshot.name, snapshot.documents) == ("000000", 0)
    assert snapshot.search(three_query).hits == []
    assert snapshot.score_all(three_query)[0] == []
    with collection.writer() as writer:
        assert writer.publish() == "000001"
    assert collection.snapshot().search(three_query).hits == []


def test_a_closed_snapshot_says_so(build: Any, three: Any, three_query: Any) -> None:
    snapshot: Snapshot = build(three).snapshot()
    snapshot.close()
    with pytest.raises(SearchIndexError, match="closed"):
        snapshot.search(three_query)


def test_a_query_is_read_once_for_all_explanations(
    build: Any, three: Any, three_query: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its text may have 200,000 characters, and its hits may be many."""
    snapshot = build(three, segment=2, bm25=True).snapshot()
    texts: list[str] = []
    real = Bm25Statistics.query

    def counted(self: Bm25Statistics, text: str) -> Any:
        texts.append(text)
        return real(self, text)

    monkeypatch.setattr(Bm25Statistics, "query", counted)
    found = snapshot.explanations(three_query, ["c", "a", "b"], "cat apple")
    assert texts == ["cat apple"]
    assert [each.bm25.terms for each in found] == [("cat",), ("appl",), ()]
    assert snapshot.explanations(three_query, ["a"], "cat apple")[0].bm25.terms == ("appl",)
    assert snapshot.encodings_of(["a", "b"]) == 2
