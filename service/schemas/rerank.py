"""Shapes of `/rerank`."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.json_schema import SkipJsonSchema
from pydantic_core import PydanticCustomError

from tercet.service.schemas.base import (
    WHOLE,
    AdapterName,
    ModelName,
    Request,
    Text,
    Texts,
    Usage,
    counted,
)
from tercet.service.schemas.search import CollectionName, PresetName, WeightsRequest
from tercet.service.schemas.search_answers import QueryUsage, ScoresResponse


def _for_search(value: object) -> None:
    if value is not None:
        raise PydanticCustomError(
            "of_search", "it is for /search; /rerank has dense, sparse and colbert: leave it out"
        )


class RerankWeightsRequest(WeightsRequest):
    """Weights of the three scores in the sum; one that is not given is 1, and 0 leaves a side out."""

    # Not described; here so that what suits /search is told from a misspelt name.
    bm25: SkipJsonSchema[Annotated[None, BeforeValidator(_for_search)]] = None


class RerankRequest(Request):
    """Documents to order by their scores with a query."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"query": "how is tea made", "inputs": ["Brewing tea.", "A history of rail."]}]
        }
    )

    query: Text
    inputs: Annotated[
        Texts,
        Field(description="Their number is limited by the setting `max_documents`."),
        counted("documents", "texts"),
    ]
    top_k: Annotated[int, Field(ge=1), WHOLE] | None = Field(None, description="Results; all by default.")
    collection: CollectionName | None = Field(
        None,
        description="Score the texts as documents of this collection: with its idf, its adapter and its "
        "stored weights. By default of none.",
    )
    weights: RerankWeightsRequest | PresetName | None = Field(
        None,
        description="As in `/search`; by default those stored with `collection`, or else `sum`.",
    )
    model: ModelName | None = Field(
        None,
        description="The encoder, one that `/v1/models` lists; by default that of `collection`, or else the "
        "server's own. Another than the collection's is a conflict, 409.",
    )
    adapter: AdapterName | None = Field(
        None,
        description="An adapter, or a router that chooses one for each text; by default that of "
        "`collection`, if any. Another than the collection's is a conflict, 409.",
    )


class RerankResult(BaseModel):
    """One document's scores; `index` is its place in the request."""

    index: int
    score: float
    scores: ScoresResponse
    truncated: bool = Field(description="Whether the document was longer than the encoder's limit.")


class RerankResponse(BaseModel):
    """Results, best first; ties in the request's order."""

    query: QueryUsage
    results: list[RerankResult]
    usage: Usage
