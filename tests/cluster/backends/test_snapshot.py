"""What an engine's candidates give is what our own collection of the same documents gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tercet.index.candidates import CandidateLimits, Cursor, Page, Weights
from tercet.index.documents.boosts import FilterBoost
from tercet.index.documents.filters import parse_filter
from tercet.index.errors import DocumentNotFoundError, InvalidQueryError
from tercet.index.search.snapshot_query import SnapshotQuery
from tercet.models.encoder import encode
from tercet.service.exceptions import NotInBackendError

BOTH = [
    *(("qdrant", kind) for kind in ("plain", "idf", "float16", "pooled", "none", "whole", "windows")),
    *(("qdrant-late", kind) for kind in ("plain", "pooled", "whole", "windows")),
    *(("milvus", kind) for kind in ("plain", "idf", "none", "whole")),
]
SEARCHES: list[dict[str, Any]] = [
    {},
    {"weights": Weights(1.0, 0.5, 2.0), "top_k": 100},
    {"candidates": CandidateLimits(7, 5)},
    {"candidates": CandidateLimits(0, 5), "weights": Weights(0.3, 1, -0.5)},
    {"weights": Weights(1, 0, 0)},
    {"weights": Weights(0, 1, 0), "candidates": CandidateLimits(0, 20), "top_k": 30},
    {"fusion": "rrf"},
    {"group_by": "kind"},
    {"page": Page(offset=3, min_score=0.1), "contents": False},
    {"page": Page(after=Cursor(0.9, "d/2 é"))},
    {"filter": parse_filter({"and": [{"gte": {"year": 2010}}, {"not": {"eq": {"kind": "c"}}}]})},
    {"without": ["d/3 é", "d/4 é", "none"], "candidates": CandidateLimits(9, 9)},
]


def same(own: Any, there: Any) -> None:
    """Equal hits to the last digit."""
    assert [(hit.document.id, hit.score) for hit in there] == [(hit.document.id, hit.score) for hit in own]
    assert there == own


@pytest.mark.slow
@pytest.mark.parametrize(("engine", "kind"), BOTH)
def test_hits_and_scores_are_ours_to_the_last_digit(
    pair: Callable[..., Any], tiny: Any, queries: list[str], engine: str, kind: str
) -> None:
    both = pair(engine, kind)
    assert both.there.settings == replace(both.own.settings, bm25=False, checkpoint=None)
    for text in queries[:4]:
        query = encode(tiny, [text], "query")
        for options in SEARCHES:
            asked = SnapshotQuery(query, **options)
            same(both.own.answer(asked).hits, both.there.answer(asked).hits)


def test_what_is_told_of_documents_is_what_an_own_collection_tells(
    pair: Callable[..., Any], tiny: Any, queries: list[str]
) -> None:
    both = pair("qdrant", "windows")
    query, ids = encode(tiny, queries[:1], "query"), ["d/7 é", "d/20 é", "d/21 é"]
    for each in zip(both.own.explanations(query, ids), both.there.explanations(query, ids), strict=True):
        assert each[0].terms.products.tolist() == each[1].terms.products.tolist()
        assert each[0].alignment.similarities.tolist() == each[1].alignment.similarities.tolist()
        assert each[0].alignment.window == each[1].alignment.window
    assert both.there.encodings_of(ids) == both.own.encodings_of(ids)
    boosts = (FilterBoost(parse_filter({"eq": {"kind": "a"}}), 0.5),)
    assert both.there.boosts_of(ids, boosts).tolist() == both.own.boosts_of(ids, boosts).tolist()
    boosted = [each.answer(SnapshotQuery(query, boosts=boosts)).hits for each in (both.own, both.there)]
    same(*boosted)
    for window in (0, 1):
        first, second = (each.stored_query("d/15 é", window) for each in (both.own, both.there))
        assert first.text == second.text
        assert first.representations.dense.tolist() == second.representations.dense.tolist()
    with pytest.raises(InvalidQueryError, match="not in snapshot"):
        both.there.explanations(query, ["none"])
    with pytest.raises(DocumentNotFoundError, match="no document 'none'"):
        both.there.examples_query(["d/7 é", "none"])
    with pytest.raises(InvalidQueryError, match="'colour' is not declared"):
        both.there.answer(SnapshotQuery(query, filter=parse_filter({"eq": {"colour": "red"}})))
    with pytest.raises(NotInBackendError, match="facets is not offered"):
        both.there.facets({"kind": 3})


def test_ties_at_a_limit_are_cut_by_id(pair: Callable[..., Any], tiny: Any, monkeypatch: Any) -> None:
    """The copy of a document scores as it does: whichever limit falls between them, the lesser id stays."""
    monkeypatch.setattr("tercet.cluster.backends.candidates.SPARE", 1)
    both = pair("qdrant", "plain")
    query = both.own.stored_query("d/3 é").representations
    assert [hit.document.id for hit in both.own.search(query, top_k=2).hits] == ["d/3 é", "d/copy"]
    for limit in (1, 2, 3):
        asked = SnapshotQuery(query, candidates=CandidateLimits(limit, 0))
        same(both.own.answer(asked).hits, both.there.answer(asked).hits)


@pytest.mark.slow
def test_what_may_be_a_hit_is_read_whatever_the_engine_makes_of_windows(
    pair: Callable[..., Any], tiny: Any, queries: list[str], monkeypatch: Any
) -> None:
    """Over all windows together late interaction is larger, so the engine's best are not always ours."""
    monkeypatch.setattr("tercet.cluster.backends.narrowing.SPARE", 0)
    both = pair("qdrant-late", "windows")
    for text in queries:
        query = encode(tiny, [text], "query")
        for top_k in (1, 2, 3):
            options: dict[str, Any] = {"top_k": top_k, "weights": Weights(0.1, 0.1, 5), "leading": Weights()}
            asked = SnapshotQuery(query, **options)
            found = both.there.answer(asked)
            same(both.own.answer(asked).hits, found.hits)
            assert found.leaders is None  # who leads by other weights may not have been read
