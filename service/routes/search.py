"""`POST /search`."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Annotated, Any

import orjson
from fastapi import Query, Request, Response

from tercet.index.candidates import Cursor, Page
from tercet.index.documents.boosts import Boost, parse_boost
from tercet.index.errors import InvalidQueryError
from tercet.models.representations import OUTPUTS, Output
from tercet.service.answers.pieces import BegunAnswer, response_of
from tercet.service.exceptions import InvalidRequestError
from tercet.service.load.relay import on_loop, relayed
from tercet.service.requests.keys import access_of
from tercet.service.routes.common import (
    Services,
    TimeLimit,
    check_characters,
    errors,
    numbers_of,
    reached,
    router,
    weights_of,
)
from tercet.service.routes.document_bodies import filter_of
from tercet.service.schemas.search import (
    CandidatesRequest,
    CollectionName,
    ExamplesQuery,
    RepresentationsQuery,
    SearchOptions,
    SearchRequest,
    StoredDocumentQuery,
    WeightsRequest,
)
from tercet.service.schemas.search_answers import SearchManyResponse, SearchResponse
from tercet.service.search.answers import answer_head, answer_hits, batch_head, result_head, stage_seconds
from tercet.service.search.defaults import WantedCandidates, WantedEffort
from tercet.service.search.query import (
    DEFAULT_PARTS,
    FacetQuery,
    SearchOutcome,
    SearchQuery,
    SearchScope,
    facet_counts,
)
from tercet.service.search.ready_queries import ReadyQuery
from tercet.service.search.slow import log_if_slow
from tercet.service.search.stored_queries import Like, LikeDocument, LikeExamples
from tercet.service.settings.settings import RequestLimits

DEFAULT_TOP_K = 10

QueryInput = str | RepresentationsQuery | StoredDocumentQuery | ExamplesQuery

routes = router("search")


@routes.post(
    "/search", response_model=SearchResponse | SearchManyResponse, responses=errors(404, 409, 413, 422)
)
@relayed
async def search(body: SearchRequest, request: Request, services: Services, deadline: TimeLimit) -> Response:
    """Find documents: candidates of each retriever, every one with all scores that its collection has.

    `score` is the weighted sum of the scores, or what `fusion` makes of them; every part is in the answer. To
    `queries` the answer has `results`, one for each, in the place of `query` and `hits`.
    """
    access_of(request).require_name(body.collection, "collection")
    inputs = _query_inputs(body)
    queries = _queries(body, inputs, services.limits)
    scope = SearchScope(
        body.collection,
        body.adapter,
        body.snapshot,
        allow_partial=bool(body.allow_partial),
        newest=body.min_position is not None,
        facets=None if body.facets is None else FacetQuery(facet_counts(body.facets), queries[0].filter),
    )
    await reached(services, body.collection, body.min_position, deadline)
    started = time.perf_counter()
    settings, request_id = services.settings, request.state.request_id

    def counted(_query: SearchQuery, outcome: SearchOutcome) -> SearchOutcome:
        for stage, seconds in stage_seconds(outcome).items():
            services.telemetry.observe_stage(stage, seconds)
        return outcome

    def begun(query: SearchQuery, outcome: SearchOutcome) -> tuple[SearchOutcome, BegunAnswer]:
        hits = answer_hits(counted(query, outcome), _absent(inputs[0]), query.include)
        return outcome, BegunAnswer.of(_pieces(answer_head(outcome), hits))

    def note_slow(outcomes: Sequence[SearchOutcome]) -> None:
        limit_seconds, with_text = settings.slow_search_seconds, settings.slow_search_text
        for query, outcome in zip(queries, outcomes, strict=True):
            log_if_slow(query, outcome, limit_seconds, request_id, with_text=with_text)

    if body.queries is None:
        ((outcome, answer),) = await services.pipeline.answer(scope, queries, begun, deadline)
        note_slow([outcome])
        return answer.response()
    outcomes = await services.pipeline.answer(scope, queries, counted, deadline)
    total_seconds = time.perf_counter() - started
    note_slow(outcomes)
    hits = (
        answer_hits(outcome, _absent(query_input), query.include)
        for query_input, query, outcome in zip(inputs, queries, outcomes, strict=True)
    )
    results = _results(batch_head(outcomes, total_seconds), map(result_head, outcomes), hits)
    return await on_loop(response_of(results))


@routes.get("/search", response_model=SearchResponse, responses=errors(404, 409, 422))
async def search_by_address(
    collection: Annotated[CollectionName, Query()],
    q: Annotated[str, Query(description="The query, a text.")],
    request: Request,
    services: Services,
    deadline: TimeLimit,
    top_k: Annotated[int | None, Query(ge=1, description="Hits, by default 10.")] = None,
) -> Response:
    """Find documents by an address alone, for a look: what `POST /search` answers to a text."""
    body = SearchRequest.model_validate({"collection": collection, "query": q, "top_k": top_k})
    try:
        return await search(body=body, request=request, services=services, deadline=deadline)
    except InvalidRequestError as error:
        if error.param != "query":
            raise
        raise InvalidRequestError(f"q{str(error).removeprefix('query')}", "q", error.code) from error


def _queries(body: SearchRequest, inputs: Sequence[QueryInput], limits: RequestLimits) -> list[SearchQuery]:
    """What is searched for, and how. Raises InvalidRequestError."""
    top_k = _top_k(body.top_k, len(inputs), limits)
    if body.reranker is not None:
        _require_few(len(inputs) * top_k, limits)
    params = ["query"] if body.queries is None else [f"queries.{index}" for index in range(len(inputs))]
    alike = partial(
        SearchQuery,
        top_k=top_k,
        weights=None if body.weights is None else weights_of(body.weights),
        requested_sides=body.weights.requested if isinstance(body.weights, WeightsRequest) else frozenset(),
        candidates=_candidates(body.candidates, limits),
        filter=filter_of(body.filter, body.partition),
        explain=bool(body.explain),
        highlight=bool(body.highlight),
        effort=_effort(body.search_options),
        page=_page(body),
        group_by=body.group_by,
        reranker=body.reranker,
        min_confidence=body.min_confidence,
        fusion=body.fusion or "sum",
        boosts=_boosts(body.boosts or ()),
        include=DEFAULT_PARTS if body.include is None else frozenset(body.include),
    )
    return [
        alike(_query(query_input, limits, param), text=_text(query_input, limits, param), param=param)
        for query_input, param in zip(inputs, params, strict=True)
    ]


def _pieces(head: Mapping[str, Any], hits: Iterable[Mapping[str, Any]]) -> Iterator[bytes]:
    """The answer's JSON, hit by hit: there may be a thousand long documents, each with an explanation."""
    yield orjson.dumps(head)[:-1] + b',"hits":['
    for index, hit in enumerate(hits):
        yield b"," + orjson.dumps(hit) if index else orjson.dumps(hit)
    yield b"]}"


async def _results(
    head: Mapping[str, Any],
    heads: Iterable[Mapping[str, Any]],
    hits: Iterable[Iterable[Mapping[str, Any]]],
) -> AsyncGenerator[bytes]:
    """The JSON of an answer to several queries, hit by hit."""
    yield orjson.dumps(head)[:-1] + b',"results":['
    for index, (result, result_hits) in enumerate(zip(heads, hits, strict=True)):
        if index:
            yield b","
        for piece in _pieces(result, result_hits):
            yield piece
    yield b"]}"


def _query_inputs(body: SearchRequest) -> Sequence[QueryInput]:
    """All that is searched for. Raises InvalidRequestError."""
    if body.queries is None:
        if body.query is None:
            raise InvalidRequestError("query is missing; give it, or queries", "query", "missing_field")
        return [body.query]
    if body.query is not None:
        raise InvalidRequestError("query and queries are both given; leave one out", "queries")
    if body.search_after is not None:
        raise InvalidRequestError("search_after goes with one query, not with queries", "search_after")
    return body.queries


def _top_k(wanted: int | None, queries: int, limits: RequestLimits) -> int:
    top_k = min(DEFAULT_TOP_K, limits.top_k) if wanted is None else wanted
    _within(top_k, limits.top_k, "top_k", "max_top_k")
    if queries > 1 and queries * top_k > limits.query_hits:
        raise InvalidRequestError(
            f"{queries} queries with top_k {top_k} are {queries * top_k} hits; the limit is "
            f"{limits.query_hits} (setting max_query_hits): set top_k lower, or split the request",
            "top_k",
        )
    return top_k


def _require_few(hits: int, limits: RequestLimits) -> None:
    """Raises InvalidRequestError for more hits than a re-ranker reads for one request."""
    if hits > limits.documents:
        raise InvalidRequestError(
            f"{hits} hits are to be re-ranked; the limit is {limits.documents} (setting max_documents): set "
            "top_k lower, split the request, or leave reranker out",
            "top_k",
        )


def _page(body: SearchRequest) -> Page:
    given = body.search_after
    after = None if given is None else Cursor(given.score, given.id, given.collection)
    page = Page(body.offset or 0, after, body.min_score)
    if page.offset and after is not None:
        raise InvalidRequestError("offset and search_after are both given; leave one out", "offset")
    if after is not None and body.reranker is not None:
        raise InvalidRequestError(
            "search_after goes by the order of score, and reranker gives another; use offset", "search_after"
        )
    return page


def _absent(query: QueryInput) -> list[Output]:
    """The sides that ready representations lack, whose scores are not known."""
    if not isinstance(query, RepresentationsQuery):
        return []
    return [side for side in OUTPUTS if getattr(query, side) is None]


def _query(query: QueryInput, limits: RequestLimits, param: str) -> str | ReadyQuery | Like:
    if isinstance(query, str):
        check_characters([query], limits.characters, param)
        return query
    if isinstance(query, StoredDocumentQuery):
        return LikeDocument(query.id, query.window or 0, limits.characters, query.collection)
    if isinstance(query, ExamplesQuery):
        return LikeExamples(tuple(query.like), tuple(query.unlike or ()), limits.characters)
    sparse = None if query.sparse is None else (query.sparse.token_ids, query.sparse.weights)
    dense = numbers_of(query.dense, 1, f"{param}.dense")
    return ReadyQuery(dense, sparse, numbers_of(query.colbert, 2, f"{param}.colbert"))


def _text(query: QueryInput, limits: RequestLimits, param: str) -> str | None:
    """The text that came with ready representations."""
    if not isinstance(query, RepresentationsQuery) or query.text is None:
        return None
    check_characters([query.text], limits.characters, f"{param}.text")
    return query.text


def _candidates(requested: CandidatesRequest | None, limits: RequestLimits) -> WantedCandidates:
    if requested is None:
        return WantedCandidates(largest=limits.candidates)
    _within(requested.dense or 0, limits.candidates, "candidates.dense", "max_candidates")
    _within(requested.sparse or 0, limits.candidates, "candidates.sparse", "max_candidates")
    _within(requested.bm25 or 0, limits.candidates, "candidates.bm25", "max_candidates")
    return WantedCandidates(requested.dense, requested.sparse, requested.bm25, limits.candidates)


def _boosts(given: Sequence[object]) -> tuple[Boost, ...]:
    boosts = []
    for index, boost in enumerate(given):
        try:
            boosts.append(parse_boost(boost))
        except InvalidQueryError as error:
            raise InvalidRequestError(f"boosts.{index}: {error}", f"boosts.{index}") from error
    return tuple(boosts)


def _effort(requested: SearchOptions | None) -> WantedEffort:
    return WantedEffort() if requested is None else WantedEffort(requested.ef_search, requested.nprobe)


def _within(value: int, limit: int, param: str, setting: str) -> int:
    if value > limit:
        raise InvalidRequestError(f"{param} is {value}; the limit is {limit} (setting {setting})", param)
    return value
