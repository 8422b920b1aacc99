"""`POST /search`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastapi import Response

from index.candidates import DenseOptions, Hit
from index.errors import InvalidQueryError
from index.filters import Filter, parse_filter
from models.encoder import EncoderInfo
from models.representations import OUTPUTS, Output, Representations
from service.exceptions import InvalidRequestError
from service.routes.common import (
    Services,
    TimeLimit,
    check_characters,
    errors,
    json_response,
    router,
    weights_of,
)
from service.schemas.search import (
    CandidatesRequest,
    RepresentationsQuery,
    SearchOptions,
    SearchRequest,
    SearchResponse,
)
from service.search.defaults import WantedCandidates
from service.search.pipeline import SearchOutcome, SearchQuery
from service.search.ready_queries import ready_query
from service.settings import RequestLimits

# An answer with more text, or with explanations, is written beside the event loop: it takes milliseconds.
LARGE_CHARACTERS = 2**18

DEFAULT_TOP_K = 10

routes = router("search")


@routes.post("/search", response_model=SearchResponse, responses=errors(404, 409, 422))
async def search(body: SearchRequest, services: Services, deadline: TimeLimit) -> Response:
    """Find documents: candidates from the dense and the inverted index, each scored in all three ways.

    `score` is the weighted sum of the three scores; every part is in the answer.
    """
    limits = services.limits
    top_k = min(DEFAULT_TOP_K, limits.top_k) if body.top_k is None else body.top_k
    _within(top_k, limits.top_k, "top_k", "max_top_k")
    query = SearchQuery(
        body.collection,
        _query(body.query, services.encoding.info, limits),
        top_k=top_k,
        weights=None if body.weights is None else weights_of(body.weights),
        candidates=_candidates(body.candidates, limits),
        filter=_filter(body.filter),
        explain=bool(body.explain),
        dense_options=_dense_options(body.search_options),
        adapter=body.adapter,
    )
    outcome = await services.pipeline.search(query, deadline)
    absent = () if isinstance(body.query, str) else [s for s in OUTPUTS if getattr(body.query, s) is None]
    took = {
        "encode": outcome.encode_seconds,
        "retrieve": outcome.retrieve_seconds,
        "score": outcome.score_seconds,
        "total": outcome.total_seconds,
    }
    for stage, seconds in took.items():
        services.telemetry.observe_stage(stage, seconds)
    answer = {
        "collection": outcome.collection,
        "snapshot": outcome.snapshot,
        "query": {"tokens": outcome.tokens, "truncated": outcome.truncated},
        "weights": outcome.weights,  # dataclasses, which orjson writes
        "candidates": outcome.candidates,
        "took_ms": {stage: round(seconds * 1000, 3) for stage, seconds in took.items()},
        "hits": _hits(outcome, absent),
    }
    if outcome.explanations or sum(len(hit.document.text) for hit in outcome.hits) > LARGE_CHARACTERS:
        return await services.pools.answers.run(json_response, answer)
    return json_response(answer)


def _query(
    query: str | RepresentationsQuery, info: EncoderInfo, limits: RequestLimits
) -> str | Representations:
    if isinstance(query, str):
        check_characters([query], limits.characters, "query")
        return query
    sparse = None if query.sparse is None else (query.sparse.token_ids, query.sparse.weights)
    return ready_query(query.dense, sparse, query.colbert, info)


def _candidates(requested: CandidatesRequest | None, limits: RequestLimits) -> WantedCandidates:
    if requested is None:
        return WantedCandidates(largest=limits.candidates)
    _within(requested.dense or 0, limits.candidates, "candidates.dense", "max_candidates")
    _within(requested.sparse or 0, limits.candidates, "candidates.sparse", "max_candidates")
    if requested.dense == requested.sparse == 0:
        raise InvalidRequestError("candidates are 0 on both sides, so nothing can be found", "candidates")
    return WantedCandidates(requested.dense, requested.sparse, limits.candidates)


def _filter(tree: dict[str, Any] | None) -> Filter | None:
    try:
        return None if tree is None else parse_filter(tree)
    except InvalidQueryError as error:
        raise InvalidRequestError(str(error), "filter", "invalid_filter") from error


def _dense_options(requested: SearchOptions | None) -> DenseOptions:
    given = {} if requested is None else requested.model_dump(exclude_none=True)
    return DenseOptions(**given)


def _within(value: int, limit: int, param: str, setting: str) -> int:
    if value > limit:
        raise InvalidRequestError(f"{param} is {value}; the limit is {limit} (setting {setting})", param)
    return value


def _hits(outcome: SearchOutcome, absent: Sequence[Output]) -> list[dict[str, Any]]:
    """absent: sides that the query did not have, whose scores are not known rather than 0."""
    hits = [_hit(hit) for hit in outcome.hits]
    for hit in hits:
        hit["scores"].update(dict.fromkeys(absent))
    for hit, explanation in zip(hits, outcome.explanations or (), strict=False):
        hit["explanation"] = explanation  # a dataclass, which orjson writes
    return hits


def _hit(hit: Hit) -> dict[str, Any]:
    document, scores = hit.document, hit.scores
    return {
        "id": document.id,
        "score": hit.score,
        "scores": {"dense": scores.dense, "sparse": scores.sparse, "colbert": scores.colbert},
        "title": document.title,
        "text": document.text,
        "metadata": document.metadata,
    }
