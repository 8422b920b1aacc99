"""`POST /rerank`."""

from __future__ import annotations

from fastapi import Request, Response

from tercet.index.candidates import Weights
from tercet.service.requests.keys import access_of
from tercet.service.routes.common import (
    Services,
    TimeLimit,
    check_characters,
    encoder_named,
    errors,
    json_response,
    router,
    weights_of,
)
from tercet.service.schemas.rerank import RerankRequest, RerankResponse
from tercet.service.schemas.search import WeightsRequest
from tercet.service.search.answers import answer_query, scores_record
from tercet.service.search.checks import require_known_sides
from tercet.service.search.defaults import rerank_weights
from tercet.service.search.rerank import RerankOutcome
from tercet.service.search.rerank import rerank as ranked
from tercet.service.search.target import target_of

routes = router("rerank")


@routes.post("/rerank", response_model=RerankResponse, responses=errors(404, 409, 422))
async def rerank(body: RerankRequest, request: Request, services: Services, deadline: TimeLimit) -> Response:
    """Order texts by their three-way score with a query, of themselves or as documents of a collection."""
    if body.collection is not None:
        access_of(request).require_name(body.collection, "collection")
    limits = services.limits
    check_characters([body.query], limits.characters, "query")
    check_characters(body.inputs, limits.characters, "inputs")
    weights = None if body.weights is None else weights_of(body.weights)
    usual, idf, adapter = Weights(), None, body.adapter
    if body.collection is None:
        encoding = await encoder_named(services, body.model)
    else:
        target, encoding = await target_of(
            services.collections,
            services.encoders,
            services.pools.search,
            body.collection,
            body.adapter,
            model=body.model,
            with_defaults=weights is None,
        )
        usual, idf = rerank_weights(target), target.snapshot.idf
        adapter = target.snapshot.settings.adapter
    if isinstance(body.weights, WeightsRequest) and weights is not None:
        require_known_sides(body.weights.requested, encoding.info.sides, encoding.info.name, weights)
    with services.telemetry.stage("rerank"):
        outcome = await ranked(
            encoding,
            services.pools.search,
            body.query,
            body.inputs,
            weights=weights or usual,
            request_tokens=limits.request_tokens,
            top_n=body.top_k,
            idf=idf,
            adapter=adapter,
            deadline=deadline,
        )
    return await services.pools.bodies.run(_response, outcome)


def _response(outcome: RerankOutcome) -> Response:
    """An answer with a result for each text, too many to be written on the event loop."""
    return json_response(
        {
            "query": answer_query(outcome.query),
            "results": [
                {
                    "index": result.index,
                    "score": result.score,
                    "scores": scores_record(result.scores, outcome.sides),
                    "truncated": result.truncated,
                }
                for result in outcome.results
            ],
            "usage": {"tokens": outcome.tokens},
        }
    )
