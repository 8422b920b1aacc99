"""`POST /search`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping
from typing import Any, TypeVar

import orjson
from fastapi import Request, Response

from index.candidates import DenseOptions
from index.documents.filters import Filter, parse_filter
from index.errors import InvalidQueryError
from models.encoder import EncoderInfo
from models.representations import OUTPUTS, Float32, Representations
from service.answers.pieces import response_of
from service.exceptions import InvalidRequestError
from service.ready_representations import unpacked
from service.routes.common import Services, TimeLimit, check_characters, errors, router, weights_of
from service.schemas.search import (
    CandidatesRequest,
    PackedVectors,
    RepresentationsQuery,
    SearchOptions,
    SearchRequest,
    SearchResponse,
)
from service.search.answers import answer_head, answer_hits, stage_seconds
from service.search.defaults import WantedCandidates
from service.search.pipeline import SearchQuery
from service.search.ready_queries import ready_query
from service.search.slow import log_if_slow
from service.settings import RequestLimits

DEFAULT_TOP_K = 10

Numbers = TypeVar("Numbers")

routes = router("search")


@routes.post("/search", response_model=SearchResponse, responses=errors(404, 409, 422))
async def search(body: SearchRequest, request: Request, services: Services, deadline: TimeLimit) -> Response:
    """Find documents: candidates of each retriever, every one with all scores that its collection has.

    `score` is the weighted sum of the scores; every part is in the answer.
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
        text=_text(body.query, limits),
    )
    outcome = await services.pipeline.search(query, deadline)
    absent = () if isinstance(body.query, str) else [s for s in OUTPUTS if getattr(body.query, s) is None]
    for stage, seconds in stage_seconds(outcome).items():
        services.telemetry.observe_stage(stage, seconds)
    settings = services.settings
    log_if_slow(
        query,
        outcome,
        settings.slow_search_seconds,
        request.state.request_id,
        with_text=settings.slow_search_text,
    )
    return await response_of(_pieces(answer_head(outcome), answer_hits(outcome, absent)))


async def _pieces(head: Mapping[str, Any], hits: Iterable[Mapping[str, Any]]) -> AsyncGenerator[bytes]:
    """The answer's JSON, hit by hit: there may be a thousand long documents, each with an explanation."""
    yield orjson.dumps(head)[:-1] + b',"hits":['
    for place, hit in enumerate(hits):
        yield b"," + orjson.dumps(hit) if place else orjson.dumps(hit)
    yield b"]}"


def _query(
    query: str | RepresentationsQuery, info: EncoderInfo, limits: RequestLimits
) -> str | Representations:
    if isinstance(query, str):
        check_characters([query], limits.characters, "query")
        return query
    sparse = None if query.sparse is None else (query.sparse.token_ids, query.sparse.weights)
    dense = _numbers(query.dense, 1, "query.dense")
    return ready_query(dense, sparse, _numbers(query.colbert, 2, "query.colbert"), info)


def _text(query: str | RepresentationsQuery, limits: RequestLimits) -> str | None:
    """The text that came with ready representations."""
    if isinstance(query, str) or query.text is None:
        return None
    check_characters([query.text], limits.characters, "query.text")
    return query.text


def _numbers(given: Numbers | PackedVectors, axes: int, param: str) -> Numbers | Float32:
    """Lists as they are, packed vectors as an array."""
    return unpacked(given.data, given.shape, axes, param) if isinstance(given, PackedVectors) else given


def _candidates(requested: CandidatesRequest | None, limits: RequestLimits) -> WantedCandidates:
    if requested is None:
        return WantedCandidates(largest=limits.candidates)
    _within(requested.dense or 0, limits.candidates, "candidates.dense", "max_candidates")
    _within(requested.sparse or 0, limits.candidates, "candidates.sparse", "max_candidates")
    _within(requested.bm25 or 0, limits.candidates, "candidates.bm25", "max_candidates")
    return WantedCandidates(requested.dense, requested.sparse, requested.bm25, limits.candidates)


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
