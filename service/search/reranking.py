"""Hits of a search in the order in which a cross-encoder puts them."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from tercet.index.candidates import Hit, SearchResult
from tercet.service.encoding.rerankers import Reranker
from tercet.service.exceptions import InvalidRequestError
from tercet.service.load.admission import Ticket


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found. began: of the monotonic clock, when it began to search; rerank_seconds: what a
    cross-encoder took that put the hits in order, with waiting for it, None without one.
    """

    result: SearchResult
    began: float
    rerank_seconds: float | None = None


async def reranked(reranker: Reranker, query: str, found: Found, ticket: Ticket) -> Found:
    """The hits that were found, highest logit first; equal ones stay in their order.

    Raises InvalidRequestError for a hit without a text, and what `Reranker.scores` raises.
    """
    started = time.monotonic()
    passages = [passage_of(hit) for hit in found.result.hits]
    logits = await reranker.scores(query, passages, ticket) if passages else []
    hits = [
        replace(hit, scores=replace(hit.scores, reranker=logit))
        for hit, logit in zip(found.result.hits, logits, strict=True)
    ]
    hits.sort(key=lambda hit: hit.scores.reranker or 0.0, reverse=True)
    return Found(replace(found.result, hits=hits), found.began, time.monotonic() - started)


def passage_of(hit: Hit) -> str:
    """What a re-ranker reads of a hit: the title, and the text or the window of it that matches best.

    Raises InvalidRequestError where there is none.
    """
    document, window = hit.document, hit.window
    text = document.text if window is None else document.text[window.start : window.end]
    if not (document.head + text).strip():
        raise InvalidRequestError(
            f"document {document.id[:80]!r} is among the hits and has no text for a re-ranker to read; leave "
            "it out with filter, or leave reranker out",
            "reranker",
            "no_text",
        )
    return document.head + text


def require_words(words: str | None, param: str) -> str:
    """The text of a query. Raises InvalidRequestError, which `param` names, where none is known."""
    if words is None or not words.strip():
        raise InvalidRequestError(
            f"{param} has no text, or too long a one, for a re-ranker to read; give a text, or `text` beside "
            "ready representations, or leave reranker out",
            param,
            "no_text",
        )
    return words
