"""A search's outcome in the shape of an answer, the same for HTTP and the command line."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from tercet.index.candidates import CandidateLimits, Hit, Scores, Weights
from tercet.index.documents.partitions import partition_record
from tercet.models.representations import OUTPUTS, Output
from tercet.service.search.query import DEFAULT_PARTS, AnswerPart, SearchOutcome
from tercet.service.search.query_terms import ReadQuery


def stage_seconds(outcome: SearchOutcome) -> dict[str, float]:
    """The time of each stage of a search, by its name in answers and metrics."""
    seconds = outcome.seconds
    stages = ((stage, getattr(seconds, stage)) for stage in seconds.__slots__)
    return {stage: taken for stage, taken in stages if taken is not None}


def answer_head(outcome: SearchOutcome) -> dict[str, Any]:
    """All of an answer but its hits."""
    return {
        "collection": outcome.collection,
        "snapshot": outcome.snapshot,
        "query": answer_query(outcome.query),
        "weights": sides_record(outcome.weights, bm25=outcome.bm25),
        "candidates": sides_record(outcome.candidates, bm25=outcome.bm25),
        "took_ms": _milliseconds(stage_seconds(outcome)),
        "exhausted": outcome.exhausted,
        **_confident(outcome),
        **_facets(outcome),
        **_partial(outcome),
    }


def answer_query(query: ReadQuery) -> dict[str, Any]:
    """How a query was read, with its terms where they were asked for and an idf multiplies their weights."""
    read: dict[str, Any] = {"tokens": query.tokens, "truncated": query.truncated}
    return read if query.terms is None else {**read, "terms": query.terms}


def _confident(outcome: SearchOutcome) -> dict[str, Any]:
    return {} if outcome.confident is None else {"confident": outcome.confident}


def _facets(outcome: SearchOutcome) -> dict[str, Any]:
    if outcome.facets is None:
        return {}
    facets = {name: asdict(facet) for name, facet in outcome.facets.items()}
    for facet in facets.values():
        if facet["unlisted"] is None:
            del facet["unlisted"]
    return {"facets": facets}


def _partial(outcome: SearchOutcome) -> dict[str, Any]:
    """What the answer lacks, where something did not answer."""
    return {"partial": {"shards": outcome.lost}} if outcome.lost else {}


def batch_head(outcomes: Sequence[SearchOutcome], total_seconds: float) -> dict[str, Any]:
    """All of an answer to several queries but the result of each; total_seconds: of all of them."""
    first = outcomes[0]
    seconds = {
        "encode": first.seconds.encode,
        "retrieve": sum(outcome.seconds.retrieve for outcome in outcomes),
        "score": sum(outcome.seconds.score for outcome in outcomes),
        "total": total_seconds,
    }
    if first.seconds.rerank is not None:
        seconds["rerank"] = sum(outcome.seconds.rerank or 0.0 for outcome in outcomes)
    lost = tuple(dict.fromkeys(name for outcome in outcomes for name in outcome.lost))
    head = {**answer_head(replace(first, lost=lost)), "took_ms": _milliseconds(seconds)}
    return {name: value for name, value in head.items() if name not in ("query", "exhausted", "confident")}


def result_head(outcome: SearchOutcome) -> dict[str, Any]:
    """All of the result of one of several queries but its hits."""
    return {
        "query": answer_query(outcome.query),
        "took_ms": _milliseconds(stage_seconds(outcome)),
        "exhausted": outcome.exhausted,
        **_confident(outcome),
    }


def _milliseconds(seconds: Mapping[str, float]) -> dict[str, float]:
    return {stage: round(stage_seconds * 1000, 3) for stage, stage_seconds in seconds.items()}


def answer_hits(
    outcome: SearchOutcome,
    absent: Collection[Output] = (),
    include: Collection[AnswerPart] = DEFAULT_PARTS,
) -> Iterator[dict[str, Any]]:
    """The hits, best first, each with its explanation where there are some.

    absent: sides that the query did not have, whose scores are not known rather than 0, as those of sides
    that the encoder does not have. include: the parts of a hit that are shown beside its id and score.
    """
    known = [side for side in outcome.sides if side not in absent]
    for index, hit in enumerate(outcome.hits):
        confidence = None if outcome.confidences is None else outcome.confidences[index]
        shaped = _hit(hit, confidence, known, include, bm25=outcome.bm25)
        if outcome.explanations is not None:
            shaped["explanation"] = outcome.explanations[index]
        if outcome.highlights is not None:
            highlights = outcome.highlights[index]
            shaped |= {"highlights": highlights.text, "title_highlights": highlights.title}
        yield shaped


def sides_record(sides: Weights | CandidateLimits | Scores, *, bm25: bool) -> dict[str, Any]:
    """What there is of each side, by its name; BM25 is a side only where the collection has it, and what
    boosts add and a re-ranker says is there only where they were asked for.
    """
    record = {
        name: getattr(sides, name) for name in sides.__slots__
    }  # asdict copies, and takes ten times as long
    if not bm25:
        del record["bm25"]
    if isinstance(sides, Scores):
        for name in ("boost", "reranker"):
            if record[name] is None:
                del record[name]
    return record


def scores_record(scores: Scores, known: Collection[Output], *, bm25: bool = False) -> dict[str, Any]:
    """The scores by their names, null on an encoder's side that is not known."""
    record = sides_record(scores, bm25=bm25)
    return {**record, **{side: None for side in OUTPUTS if side not in known}}


def _hit(
    hit: Hit,
    confidence: float | None,
    known: Collection[Output],
    include: Collection[AnswerPart],
    *,
    bm25: bool,
) -> dict[str, Any]:
    document = hit.document
    parts: dict[AnswerPart, Any] = {
        "scores": scores_record(hit.scores, known, bm25=bm25),
        **({} if confidence is None else {"confidence": confidence}),
        **({} if hit.window is None else {"window": asdict(hit.window)}),
        "title": document.title,
        "text": document.text,
        "metadata": document.metadata,
    }
    included = {str(name): part for name, part in parts.items() if name in include}
    if "metadata" in include:
        included |= partition_record(document)
    collection = {} if document.collection is None else {"collection": document.collection}
    return {"id": document.id, **collection, "score": hit.score, **included}
