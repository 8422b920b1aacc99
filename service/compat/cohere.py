"""Cohere's `POST /v2/embed`, `/v2/rerank` and `/v1/rerank`. https://docs.cohere.com/reference"""

from __future__ import annotations

import uuid
from collections.abc import AsyncGenerator, Sequence
from typing import Annotated, Any, Literal

import numpy as np
import orjson
from fastapi import Response
from pydantic import BaseModel, ConfigDict, Field

from tercet.models.representations import Float32
from tercet.service.answers.pieces import response_of
from tercet.service.compat.request import (
    CompatibleRequest,
    Dimensions,
    Flag,
    ModelName,
    encoder_of,
    token_count,
    whole,
)
from tercet.service.compat.rerank import RerankedResult, TextRequest, ranked_texts, result_record, texts_of
from tercet.service.compat.vectors import WRITTEN
from tercet.service.encoding.options import TextOptions
from tercet.service.exceptions import InvalidRequestError
from tercet.service.http.error_shapes import CohereError
from tercet.service.routes.common import EDGE, Services, TimeLimit, json_response, router
from tercet.service.routes.texts import Fields, encoded_texts
from tercet.service.schemas.base import WHOLE, counted

FIELDS = Fields("texts", dimensions="output_dimension")
RANKED_AT_ONCE = 100  # documents of one search unit, as Cohere counts them

EmbeddingType = Literal["float", "base64", "binary", "ubinary", "int8", "uint8"]
FLOAT: list[EmbeddingType] = ["float"]
Truncate = Literal["NONE", "START", "END"]

routes = router("cohere", *EDGE, 503, shape=CohereError)


class CohereTextPart(CompatibleRequest):
    """A text within an input."""

    type: Literal["text"]
    text: str


class CohereMixedInput(CompatibleRequest):
    """An input of parts, whose texts are joined."""

    content: Annotated[list[CohereTextPart], Field(min_length=1, max_length=100, fail_fast=True)]


class CohereEmbedRequest(CompatibleRequest):
    """Texts to embed, as Cohere's clients send them."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "model": "tercet",
                    "input_type": "search_document",
                    "texts": ["Tea is brewed with hot water."],
                    "embedding_types": ["float"],
                }
            ]
        }
    )

    texts: Annotated[list[str], Field(fail_fast=True), counted("texts", "texts")] | None = Field(
        None, description="Texts; or give `inputs`."
    )
    inputs: Annotated[list[CohereMixedInput], Field(fail_fast=True), counted("texts", "texts")] | None = (
        Field(None, description="Inputs of parts, all of them texts.")
    )
    model: ModelName = None
    input_type: str | None = Field(
        "search_document", description="`search_query` is a query, anything else a document."
    )
    embedding_types: Annotated[list[EmbeddingType], Field(max_length=16, fail_fast=True)] | None = Field(
        None,
        description="`float` by default. `int8` is each vector times 127 over its largest value, rounded, "
        "which keeps its direction; `uint8` the same plus 128. `ubinary` is the signs of the values, "
        "eight in a byte; `binary` the same less 128.",
    )
    output_dimension: Dimensions = None
    truncate: Truncate | None = Field(
        "END", description="`END` cuts longer texts, `NONE` refuses them; `START` is not offered."
    )
    max_tokens: Annotated[int, Field(ge=1), WHOLE] | None = Field(
        None, description="Tokens of a text; by default the encoder's limit."
    )


class CohereRerankRequest(CompatibleRequest):
    """Texts to order, as Cohere's clients send them."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "model": "tercet",
                    "query": "how is tea made",
                    "documents": ["Tea is brewed with hot water.", "Coffee is ground."],
                    "top_n": 1,
                }
            ]
        }
    )

    query: str
    documents: Annotated[
        list[TextRequest], Field(min_length=1, fail_fast=True), counted("documents", "texts")
    ] = Field(description="Texts, or objects with a `text`.")
    model: ModelName = None
    top_n: Annotated[int, Field(ge=1), WHOLE] | None = Field(None, description="By default all.")
    return_documents: Flag | None = Field(False, description="Repeat each text in the answer (v1).")


class CohereEmbedResponse(BaseModel):
    """Embeddings by type, in the order of the texts."""

    id: str
    response_type: Literal["embeddings_by_type"]
    embeddings: dict[str, list[list[float]] | list[str]]
    texts: list[str]
    meta: dict[str, Any]


class CohereRerankResponse(BaseModel):
    """Texts, best first."""

    id: str
    results: list[RerankedResult]
    meta: dict[str, Any]


@routes.post("/v2/embed", response_model=CohereEmbedResponse)
async def cohere_embed(body: CohereEmbedRequest, services: Services, deadline: TimeLimit) -> Response:
    """Dense vectors in the shape of Cohere's API."""
    texts = _texts(body)
    types = list(dict.fromkeys(body.embedding_types or FLOAT))
    _check_offered(body, types)
    encoding, adapter = await encoder_of(services, body.model)
    _, slices = await encoded_texts(
        services,
        encoding,
        texts,
        FIELDS,
        deadline,
        TextOptions(
            input_type="query" if body.input_type == "search_query" else "document",
            outputs=["dense"],
            max_length=body.max_tokens,
            truncate=body.truncate != "NONE",
            adapter=adapter,
        ),
        dimensions=body.output_dimension,
    )
    with services.telemetry.stage("encode"):
        parts = await whole(slices)
    vectors = np.concatenate([part.dense for part in parts if part.dense is not None])
    return await response_of(_embeddings(vectors, types, texts, token_count(parts)))


@routes.post("/v2/rerank", response_model=CohereRerankResponse)
async def cohere_rerank(body: CohereRerankRequest, services: Services, deadline: TimeLimit) -> Response:
    """Texts by their three-way score with a query, in the shape of Cohere's API.

    `relevance_score` grows with the sum and lies between 0 and 1; `score` is the sum, `scores` its parts.
    """
    return await _reranked(body, services, deadline, "2")


@routes.post("/v1/rerank/", include_in_schema=False)
@routes.post("/v1/rerank", response_model=CohereRerankResponse)
async def cohere_rerank_v1(body: CohereRerankRequest, services: Services, deadline: TimeLimit) -> Response:
    """The same in the shape of version 1, which can repeat the texts."""
    return await _reranked(body, services, deadline, "1")


async def _reranked(
    body: CohereRerankRequest, services: Services, deadline: TimeLimit, version: str
) -> Response:
    texts = texts_of(body.documents, "documents")
    encoding, adapter = await encoder_of(services, body.model)
    outcome = await ranked_texts(
        services,
        encoding,
        body.query,
        texts,
        deadline,
        top_n=body.top_n,
        adapter=adapter,
    )
    results = [result_record(one, outcome.sides) for one in outcome.results]
    if body.return_documents:
        for record in results:
            record["document"] = {"text": texts[record["index"]]}
    units = -(-len(texts) // RANKED_AT_ONCE)
    return json_response(
        {"id": str(uuid.uuid4()), "results": results, "meta": _meta(version, {"search_units": units})}
    )


def _texts(body: CohereEmbedRequest) -> list[str]:
    if body.texts and not body.inputs:
        return body.texts
    if body.inputs and not body.texts:
        return ["\n".join(part.text for part in one.content) for one in body.inputs]
    raise InvalidRequestError("send either texts or inputs, with at least one text", "texts")


def _check_offered(body: CohereEmbedRequest, types: Sequence[EmbeddingType]) -> None:
    if body.truncate == "START":
        raise InvalidRequestError(
            "truncate is START; this encoder cuts at the END, or refuses with NONE", "truncate"
        )
    if {"binary", "ubinary"} & set(types) and (body.output_dimension or 8) % 8:
        raise InvalidRequestError(
            f"output_dimension is {body.output_dimension}; binary vectors take a multiple of 8",
            "output_dimension",
        )


async def _embeddings(
    vectors: Float32, types: Sequence[EmbeddingType], texts: Sequence[str], tokens: int
) -> AsyncGenerator[bytes]:
    """The answer's body, vector by vector."""
    yield b'{"id":"%b","response_type":"embeddings_by_type","embeddings":{' % str(uuid.uuid4()).encode()
    for place, kind in enumerate(types):
        yield b'%b"%b":[' % (b"," if place else b"", kind.encode())
        for row, vector in enumerate(vectors):
            yield (b"," if row else b"") + WRITTEN[kind](vector)
        yield b"]"
    meta = _meta("2", {"input_tokens": tokens})
    yield b'},"texts":' + orjson.dumps(texts) + b',"meta":' + orjson.dumps(meta) + b"}"


def _meta(version: str, billed: dict[str, int]) -> dict[str, Any]:
    return {"api_version": {"version": version}, "billed_units": billed}
