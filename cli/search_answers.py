"""A search as a server takes it, and its answer as it is printed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from tercet.cli.output import console, error_console, print_hits, print_pairs

if TYPE_CHECKING:
    from tercet.index.candidates import Hit
    from tercet.service.search.highlights import HitHighlights
    from tercet.service.search.query import SearchQuery, SearchScope


def search_body(
    scope: SearchScope, asked: SearchQuery, conditions: Any, boosts: Sequence[Any]
) -> dict[str, Any]:
    """The body of `POST /search` for a query of the command line.

    conditions, boosts: the filter, and the boosts, as JSON has them.
    """
    from tercet.service.search.stored_queries import LikeDocument, LikeExamples

    query: Any = asked.query
    if isinstance(query, LikeDocument):
        query = {"id": query.id}
    elif isinstance(query, LikeExamples):
        query = {"like": query.like, "unlike": query.unlike}
    body = {
        "collection": scope.collection,
        "query": query,
        "top_k": asked.top_k,
        "weights": None if asked.weights is None else asdict(asked.weights),
        "filter": conditions,
        "offset": asked.page.offset,
        "min_score": asked.page.min_score,
        "group_by": asked.group_by,
        "facets": None if scope.facets is None else scope.facets.values,
        "boosts": boosts,
        "fusion": asked.fusion,
        "highlight": asked.highlight,
    }
    return {key: value for key, value in body.items() if value not in (None, [])}


def hits_of(answer: Mapping[str, Any]) -> tuple[list[Hit], list[HitHighlights] | None]:
    """The hits of an answer, and what is marked in each, None where that was not asked for."""
    from tercet.index.candidates import Document, Hit, Scores, Window
    from tercet.service.search.highlights import HitHighlights

    hits = [
        Hit(
            Document(each["id"], each["text"], each["title"], each["metadata"], each.get("collection")),
            each["score"],
            Scores(**each["scores"]),
            None if each.get("window") is None else Window(**each["window"]),
        )
        for each in answer["hits"]
    ]
    marked = [
        HitHighlights(each["highlights"], each["title_highlights"])
        for each in answer["hits"]
        if "highlights" in each
    ]
    return hits, marked or None


def print_answer(answer: Mapping[str, Any], first: int) -> None:
    """An answer for people. first: rank of its first hit."""
    out = console()
    if answer["hits"]:
        hits, highlights = hits_of(answer)
        print_hits(hits, out, first, highlights)
    else:
        out.print("No hits.")
    for field, found in (answer.get("facets") or {}).items():
        values = ", ".join(f"{_named(each['value'])} {each['count']:,}" for each in found["values"]) or "none"
        print_pairs({field: f"{values} ({found['distinct']:,} different, {found['missing']:,} without)"}, out)
    if answer["query"]["truncated"]:
        error_console().print(
            f"The query was cut at {answer['query']['tokens']} tokens, the encoder's limit."
        )


def _named(value: str | bool) -> str:
    """A value as JSON has it, but a string without quotes."""
    return value if isinstance(value, str) else str(value).lower()
