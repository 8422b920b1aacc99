"""`POST /rerank`."""

from __future__ import annotations

from fastapi import Response

from service.routes.common import (
    Services,
    TimeLimit,
    check_characters,
    check_count,
    errors,
    json_response,
    router,
    weights_of,
)
from service.schemas.search import RerankRequest, RerankResponse
from service.search.rerank import rerank as ranked

routes = router("rerank")


@routes.post("/rerank", response_model=RerankResponse, responses=errors(404, 422))
async def rerank(body: RerankRequest, services: Services, deadline: TimeLimit) -> Response:
    """Order texts by their three-way score with a query; no index is involved."""
    limits = services.limits
    check_count(body.documents, limits.documents, "documents", "max_documents")
    check_characters([body.query], limits.characters, "query")
    check_characters(body.documents, limits.characters, "documents")
    weights = weights_of(body.weights or "sum")
    with services.telemetry.stage("rerank"):
        outcome = await ranked(
            services.encoding,
            services.pools.search,
            body.query,
            body.documents,
            weights=weights,
            request_tokens=limits.request_tokens,
            top_n=body.top_n,
            adapter=body.adapter,
            deadline=deadline,
        )
    return json_response(
        {
            "query": {"tokens": outcome.query_tokens, "truncated": outcome.query_truncated},
            "results": outcome.results,  # dataclasses, which orjson writes
            "usage": {"tokens": outcome.tokens},
        }
    )
