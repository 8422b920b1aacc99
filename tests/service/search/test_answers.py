"""The one shape of an answer, which `POST /search` documents and `tercet search --json` prints."""

from dataclasses import replace

from tercet.index.candidates import CandidateLimits, Document, Hit, Scores, Weights, Window
from tercet.service.schemas.search_answers import SearchResponse
from tercet.service.search.answers import answer_head, answer_hits
from tercet.service.search.explanations import ExplainedTerm, ExplainedWord, HitExplanation
from tercet.service.search.highlights import HitHighlights
from tercet.service.search.query import SearchOutcome, StageSeconds
from tercet.service.search.query_terms import QueryTerms, ReadQuery

OUTCOME = SearchOutcome(
    "tea",
    "000003",
    ReadQuery(7, truncated=False),
    Weights(1.0, 0.5, 0.0),
    CandidateLimits(20, 30),
    [
        Hit(Document("a", "Tea is brewed.", "Tea", {"year": 2001}), 1.5, Scores(1.0, 1.0, 0.25)),
        Hit(Document("b", "Trains leave."), 0.0, Scores(0.0, 0.0, None)),
    ],
    StageSeconds(0.0021236, 0.001, 0.5, 0.6),
)

WORD: ExplainedWord = {
    "term": "tea",
    "query_count": 1,
    "idf": 0.5,
    "frequency": 2,
    "document_weight": 0.6,
    "product": 0.012,
}


def test_head_by_hand() -> None:
    assert answer_head(OUTCOME) == {
        "collection": "tea",
        "snapshot": "000003",
        "query": {"tokens": 7, "truncated": False},
        "weights": {"dense": 1.0, "sparse": 0.5, "colbert": 0.0},
        "candidates": {"dense": 20, "sparse": 30},
        "took_ms": {"encode": 2.124, "retrieve": 1.0, "score": 500.0, "total": 600.0},
        "exhausted": False,
    }


def test_what_is_missing_is_told() -> None:
    head = answer_head(replace(OUTCOME, lost=("http://one",)))
    assert head["partial"] == {"shards": ("http://one",)}


def test_highlights_go_with_the_hits() -> None:
    marks = [HitHighlights([{"start": 0, "end": 3}], []), HitHighlights([], [])]
    first, second = answer_hits(replace(OUTCOME, highlights=marks))
    assert (first["highlights"], first["title_highlights"]) == ([{"start": 0, "end": 3}], [])
    assert (second["highlights"], second["title_highlights"]) == ([], [])


def test_what_boosts_added_is_a_score_of_its_own() -> None:
    hit = replace(OUTCOME.hits[0], scores=Scores(1.0, 1.0, 0.25, boost=-0.5))
    (boosted,) = answer_hits(replace(OUTCOME, hits=[hit]))
    assert boosted["scores"] == {"dense": 1.0, "sparse": 1.0, "colbert": 0.25, "boost": -0.5}


def test_hits_by_hand() -> None:
    first, second = answer_hits(OUTCOME)
    assert first == {
        "id": "a",
        "score": 1.5,
        "scores": {"dense": 1.0, "sparse": 1.0, "colbert": 0.25},
        "title": "Tea",
        "text": "Tea is brewed.",
        "metadata": {"year": 2001},
    }
    assert (second["title"], second["scores"]["colbert"]) == (None, None)


def test_a_hit_has_its_window_where_there_are_some() -> None:
    hit = replace(OUTCOME.hits[0], window=Window(2, 4, 14))
    (shaped,) = answer_hits(replace(OUTCOME, hits=[hit]))
    assert shaped["window"] == {"index": 2, "start": 4, "end": 14}
    answer = {**answer_head(OUTCOME), "hits": [shaped]}
    assert SearchResponse.model_validate(answer).hits[0].window is not None


def test_a_side_that_the_query_lacked_has_no_score() -> None:
    scores = [hit["scores"] for hit in answer_hits(OUTCOME, ["sparse"])]
    assert scores[0] == {"dense": 1.0, "sparse": None, "colbert": 0.25}


def test_the_terms_of_a_query_are_shown_where_an_idf_was_used() -> None:
    terms = QueryTerms(token_ids=[7], tokens=["tea"], weights=[0.5], idf=[1.25])
    answer = {**answer_head(replace(OUTCOME, query=ReadQuery(7, truncated=False, terms=terms))), "hits": []}
    assert answer["query"] == {"tokens": 7, "truncated": False, "terms": terms}
    shaped = SearchResponse.model_validate(answer)
    assert shaped.query.model_dump() == answer["query"]


def test_explanations_go_with_their_hits_and_the_schema_knows_it_all() -> None:
    term = ExplainedTerm(token_id=7, token="tea", query_weight=1.0, idf=1.0, document_weight=0.5, product=0.5)
    first: HitExplanation = {"terms": [term], "alignment": [], "bm25": [WORD]}
    explained = replace(
        OUTCOME,
        explanations=[first, {"terms": [], "alignment": []}],
        confidences=[0.75, 0.25],
        confident=True,
    )
    answer = {**answer_head(explained), "hits": list(answer_hits(explained))}
    assert answer["hits"][0]["explanation"] == first
    assert set(answer) == set(SearchResponse.model_fields) - {"facets", "partial"}
    shaped = SearchResponse.model_validate(answer)
    assert [hit.explanation is not None for hit in shaped.hits] == [True, True]
    assert shaped.hits[0].explanation is not None
    assert shaped.hits[0].explanation.model_dump(exclude_unset=True) == first


def test_bm25_is_named_where_the_collection_has_it() -> None:
    outcome = replace(OUTCOME, bm25=True)
    answer = {**answer_head(outcome), "hits": list(answer_hits(outcome))}
    assert answer["weights"] == {"dense": 1.0, "sparse": 0.5, "colbert": 0.0, "bm25": 0.0}
    assert answer["candidates"] == {"dense": 20, "sparse": 30, "bm25": 200}
    assert answer["hits"][0]["scores"] == {"dense": 1.0, "sparse": 1.0, "colbert": 0.25, "bm25": None}
    assert SearchResponse.model_validate(answer).weights.model_dump() == answer["weights"]
