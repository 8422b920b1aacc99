"""Dify's External Knowledge API, `POST /dify/retrieval`: collections as knowledge of its applications.

https://docs.dify.ai/en/use-dify/knowledge/external-knowledge-api
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from typing import Annotated, Any

import orjson
from fastapi import Request, Response
from pydantic import BaseModel, ConfigDict, Field

from tercet.index.candidates import Hit, Weights
from tercet.service.answers.pieces import BegunAnswer
from tercet.service.compat.dify_conditions import DifyMetadataCondition, filter_of
from tercet.service.compat.relevance import relevance
from tercet.service.compat.shapes import CompatibleRequest
from tercet.service.exceptions import InvalidRequestError
from tercet.service.http.error_shapes import DIFY_STATUS, DifyError
from tercet.service.load.relay import relayed
from tercet.service.requests.keys import access_of
from tercet.service.routes.common import EDGE, Services, TimeLimit, check_characters, errors, router
from tercet.service.routes.search import DEFAULT_TOP_K
from tercet.service.schemas.base import WHOLE
from tercet.service.schemas.search import CollectionName
from tercet.service.search.answers import stage_seconds
from tercet.service.search.defaults import WantedCandidates
from tercet.service.search.query import DEFAULT_PARTS, SearchOutcome, SearchQuery, SearchScope
from tercet.service.search.slow import log_if_slow

SIDES = 3  # the weights of a plain sum, for which the relevance is made

# A key that is not known is 403 here: see `DIFY_STATUS`.
routes = router("dify", *(status for status in EDGE if status not in DIFY_STATUS), 503, shape=DifyError)


class DifyRetrievalSetting(CompatibleRequest):
    """How much is wanted."""

    top_k: Annotated[int, Field(ge=1), WHOLE] | None = Field(
        None, description="Records at most; by default 10, and limited by the setting `max_top_k`."
    )
    score_threshold: Annotated[float, Field(ge=0, le=1)] | None = Field(
        0.0, description="Only records of this score or more."
    )


DEFAULTS = DifyRetrievalSetting(top_k=None, score_threshold=0.0)


class DifyRetrievalRequest(CompatibleRequest):
    """A query to a collection, as Dify sends it."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "knowledge_id": "demo",
                    "query": "how is tea made",
                    "retrieval_setting": {"top_k": 3, "score_threshold": 0.2},
                    "metadata_condition": {
                        "logical_operator": "and",
                        "conditions": [{"name": "lang", "comparison_operator": "is", "value": "en"}],
                    },
                }
            ]
        }
    )

    knowledge_id: CollectionName = Field(description="A collection or an alias.")
    query: str
    retrieval_setting: DifyRetrievalSetting | None = None
    metadata_condition: DifyMetadataCondition | None = None


class DifyRecord(BaseModel):
    """A document, or the passage of one that matches best where the collection has windows."""

    content: str
    score: float = Field(description="Between 0 and 1; falls from record to record.")
    title: str = Field(description="The document's title; without one its id.")
    metadata: dict[str, Any] = Field(description="The document's, with its id as `document_id`.")


class DifyRetrievalResponse(BaseModel):
    """What was found, best first."""

    records: list[DifyRecord]


@routes.post("/dify/retrieval/", include_in_schema=False)
@routes.post(
    "/dify/retrieval", response_model=DifyRetrievalResponse, responses=errors(404, 409, shape=DifyError)
)
@relayed
async def dify_retrieval(
    body: DifyRetrievalRequest, request: Request, services: Services, deadline: TimeLimit
) -> Response:
    """Searches a collection in the shape of Dify's External Knowledge API."""
    access_of(request).require_name(body.knowledge_id, "knowledge_id")
    limits, setting = services.limits, body.retrieval_setting or DEFAULTS
    check_characters([body.query], limits.characters, "query")
    top_k = setting.top_k or min(DEFAULT_TOP_K, limits.top_k)
    if top_k > limits.top_k:
        raise InvalidRequestError(
            f"retrieval_setting.top_k is {top_k}; the limit is {limits.top_k} (setting max_top_k)",
            "retrieval_setting.top_k",
        )
    query = SearchQuery(
        body.query,
        top_k=top_k,
        candidates=WantedCandidates(largest=limits.candidates),
        filter=filter_of(body.metadata_condition),
        include=DEFAULT_PARTS - {"confidence"},  # Dify has but one score
    )

    def begun(_query: SearchQuery, outcome: SearchOutcome) -> tuple[SearchOutcome, BegunAnswer]:
        for stage, seconds in stage_seconds(outcome).items():
            services.telemetry.observe_stage(stage, seconds)
        return outcome, BegunAnswer.of(_pieces(outcome, setting.score_threshold or 0.0))

    scope = SearchScope(body.knowledge_id)
    ((outcome, answer),) = await services.pipeline.answer(scope, [query], begun, deadline)
    settings = services.settings
    log_if_slow(
        query,
        outcome,
        settings.slow_search_seconds,
        request.state.request_id,
        with_text=settings.slow_search_text,
    )
    return answer.response()


def _pieces(outcome: SearchOutcome, threshold: float) -> Iterator[bytes]:
    """The answer's JSON, record by record."""
    scored = ((hit, relevance(hit.score * _scale(outcome.weights))) for hit in outcome.hits)
    yield b'{"records":['
    for index, (hit, score) in enumerate(takewhile(lambda scored_hit: scored_hit[1] >= threshold, scored)):
        record = orjson.dumps(_record(hit, score))
        yield b"," + record if index else record
    yield b"]}"


def _scale(weights: Weights) -> float:
    """What makes of a weighted sum one whose weights add up to three, as those of the plain sum do."""
    total = weights.dense + weights.sparse + weights.colbert
    return SIDES / total if total > 0 else 1.0


def _record(hit: Hit, score: float) -> dict[str, Any]:
    document, window = hit.document, hit.window
    return {
        "content": document.text if window is None else document.text[window.start : window.end],
        "score": score,
        "title": document.title or document.id,
        "metadata": {"document_id": document.id, **(document.metadata or {})},
    }
