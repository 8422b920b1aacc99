"""The answer to a search as it is printed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tercet.cli.output import console, error_console, print_formula, print_hits, print_pairs

if TYPE_CHECKING:
    from tercet.index.candidates import Hit
    from tercet.service.search.highlights import HitHighlights


def hits_of(answer: Mapping[str, Any]) -> tuple[list[Hit], list[HitHighlights] | None]:
    """The hits of an answer, and what is marked in each, None where that was not asked for."""
    from tercet.index.candidates import Document, Hit, Scores, Window
    from tercet.service.search.highlights import HitHighlights

    hits = [
        Hit(
            Document(hit["id"], hit["text"], hit["title"], hit["metadata"], hit.get("collection")),
            hit["score"],
            Scores(**hit["scores"]),
            None if hit.get("window") is None else Window(**hit["window"]),
        )
        for hit in answer["hits"]
    ]
    marked = [
        HitHighlights(hit["highlights"], hit["title_highlights"])
        for hit in answer["hits"]
        if "highlights" in hit
    ]
    return hits, marked or None


def print_answer(answer: Mapping[str, Any], first: int) -> None:
    """An answer for people. first: rank of its first hit."""
    out = console()
    if not answer["hits"]:
        out.print("No hits.")
    else:
        hits, highlights = hits_of(answer)
        print_hits(hits, out, first, highlights)
        print_formula(hits, answer["weights"], out)
        if answer.get("confident") is False:
            out.print("Maybe nothing here answers that: the best hit is below the threshold of confidence.")
    for field, facet in (answer.get("facets") or {}).items():
        counts = (f"{_named(value['value'])} {value['count']:,}" for value in facet["values"])
        values = ", ".join(counts) or "none"
        print_pairs({field: f"{values} ({facet['distinct']:,} different, {facet['missing']:,} without)"}, out)
    if answer["query"]["truncated"]:
        error_console().print(
            f"The query was cut at {answer['query']['tokens']} tokens, the encoder's limit."
        )


def _named(value: str | bool) -> str:
    """A value as JSON has it, but a string without quotes."""
    return value if isinstance(value, str) else str(value).lower()
