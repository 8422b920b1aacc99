"""A log line for each search that took long, with what may have made it long."""

from __future__ import annotations

import logging

from tercet.service.search.answers import sides_record, stage_seconds
from tercet.service.search.query import SearchOutcome, SearchQuery

log = logging.getLogger("tercet.slow")


def log_if_slow(
    query: SearchQuery, outcome: SearchOutcome, seconds: float, request_id: str, *, with_text: bool
) -> None:
    """Logs a search that took at least so many seconds. with_text: with what was searched for."""
    if outcome.seconds.total < seconds:
        return
    took = {stage: round(duration * 1000, 1) for stage, duration in stage_seconds(outcome).items()}
    facts = {
        "request_id": request_id,
        "collection": outcome.collection,
        "snapshot": outcome.snapshot,
        "took_ms": took,
        "tokens": outcome.query.tokens,
        "top_k": query.top_k,
        "hits": len(outcome.hits),
        "weights": sides_record(outcome.weights, bm25=outcome.bm25),
        "candidates": sides_record(outcome.candidates, bm25=outcome.bm25),
        "filtered": query.filter is not None,
        "explained": query.explain,
    }
    if with_text and query.words is not None:
        facts["query"] = query.words
    parts = ", ".join(f"{stage} {duration:g}" for stage, duration in took.items())
    log.warning("slow search of %s: %s ms", outcome.collection, parts, extra=facts)
