"""What an engine's candidates give is what our own collection of the same documents gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from index.candidates import CandidateLimits, Cursor, Page, Weights
from index.documents.filters import parse_filter
from models.encoder import encode

BOTH = [("qdrant", kind) for kind in ("plain", "idf", "float16", "none", "whole", "windows")] + [
    ("milvus", kind) for kind in ("plain", "idf", "none", "whole")
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


@pytest.mark.parametrize(("engine", "kind"), BOTH)
def test_hits_and_scores_are_ours_to_the_last_digit(
    pair: Callable[..., Any], tiny: Any, queries: list[str], engine: str, kind: str
) -> None:
    both = pair(engine, kind)
    assert both.there.settings == replace(both.own.settings, bm25=False, checkpoint=None)
    for text in queries:
        query = encode(tiny, [text], "query")
        for options in SEARCHES:
            same(both.own.search(query, **options).hits, both.there.search(query, **options).hits)
