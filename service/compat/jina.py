"""Jina's `POST /jina/v1/rerank` and `/jina/v1/multi-vector`. https://api.jina.ai/redoc"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated, Literal

import orjson
from fastapi import Response
from pydantic import BaseModel, ConfigDict, Field

from models.representations import Representations
from service.answers.embeddings import base64_json, numbers_json
from service.answers.pieces import response_of
from service.compat.error_shapes import JinaError
from service.compat.request import CompatibleRequest, Dimensions, ModelName, encoder_of
from service.compat.rerank import RerankedResult, TextRequest, ranked_texts, result_record, texts_of
from service.exceptions import InvalidRequestError
from service.routes.common import EDGE, Services, TimeLimit, json_response, router
from service.routes.texts import Fields, encoded_texts
from service.schemas.base import WHOLE, counted

FIELDS = Fields("input")

routes = router("jina", *EDGE, 503, shape=JinaError)


class JinaRerankRequest(CompatibleRequest):
    """Texts to order, as Jina's clients send them."""

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

    query: TextRequest = Field(description="A text, or an object with a `text`.")
    documents: Annotated[
        list[TextRequest], Field(min_length=1, fail_fast=True), counted("documents", "texts")
    ] = Field(description="Texts, or objects with a `text`.")
    model: ModelName = None
    top_n: Annotated[int, Field(ge=1), WHOLE] | None = Field(None, description="By default all.")
    return_documents: bool | None = Field(True, description="Repeat each text in the answer.")


class JinaUsage(BaseModel):
    """What a request cost."""

    total_tokens: int


class JinaRerankResponse(BaseModel):
    """Texts, best first."""

    model: str
    usage: JinaUsage
    results: list[RerankedResult]


class JinaMultiVectorRequest(CompatibleRequest):
    """Texts to encode token by token, as Jina's clients send them."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "model": "tercet",
                    "input": ["Tea is brewed with hot water."],
                    "input_type": "document",
                    "embedding_type": "float",
                }
            ]
        }
    )

    input: Annotated[list[TextRequest], Field(min_length=1, fail_fast=True), counted("texts", "texts")] = (
        Field(description="Texts, or objects with a `text`.")
    )
    model: ModelName = None
    input_type: Literal["document", "query"] | None = "document"
    embedding_type: Literal["float", "base64"] | None = Field(
        "float", description="`base64`: each vector as little-endian float32."
    )
    dimensions: Dimensions | None = Field(
        None, description="Only the encoder's own: ColBERT vectors cannot be cut."
    )


class JinaMultiVector(BaseModel):
    """The ColBERT vectors of one text."""

    object: Literal["embeddings"]
    index: int
    embeddings: list[list[float]] | list[str]


class JinaMultiVectorResponse(BaseModel):
    """ColBERT vectors in the order of the texts."""

    model: str
    object: Literal["list"]
    data: list[JinaMultiVector]
    usage: JinaUsage


@routes.post("/jina/v1/rerank", response_model=JinaRerankResponse)
async def jina_rerank(body: JinaRerankRequest, services: Services, deadline: TimeLimit) -> Response:
    """Texts by their three-way score with a query, in the shape of Jina's API.

    `relevance_score` grows with the sum and lies between 0 and 1; `score` is the sum, `scores` its parts.
    """
    (query,) = texts_of([body.query], "query")
    texts = texts_of(body.documents, "documents")
    encoding, adapter = await encoder_of(services, body.model)
    outcome = await ranked_texts(
        services, encoding, query, texts, deadline, top_n=body.top_n, adapter=adapter
    )
    results = [result_record(one) for one in outcome.results]
    if body.return_documents is not False:
        for record in results:
            record["document"] = {"text": texts[record["index"]]}
    return json_response(
        {
            "model": adapter or encoding.info.name,
            "usage": {"total_tokens": outcome.tokens},
            "results": results,
        }
    )


@routes.post("/jina/v1/multi-vector", response_model=JinaMultiVectorResponse)
async def jina_multi_vector(
    body: JinaMultiVectorRequest, services: Services, deadline: TimeLimit
) -> Response:
    """ColBERT vectors in the shape of Jina's API: one for each token of a text."""
    encoding, adapter = await encoder_of(services, body.model)
    info, slices = await encoded_texts(
        services,
        encoding,
        texts_of(body.input, "input"),
        FIELDS,
        deadline,
        input_type=body.input_type or "document",
        outputs=["colbert"],
        adapter=adapter,
    )
    if body.dimensions not in (None, info.colbert_dimension):
        await slices.aclose()
        raise InvalidRequestError(
            f"dimensions is {body.dimensions}; token vectors of {info.name} have {info.colbert_dimension}",
            "dimensions",
        )
    pieces = _multi_vectors(slices, adapter or info.name, packed=body.embedding_type == "base64")
    with services.telemetry.stage("encode"):
        return await response_of(pieces)


async def _multi_vectors(
    slices: AsyncGenerator[Representations], model: str, *, packed: bool
) -> AsyncGenerator[bytes]:
    """The answer's body, text by text."""
    yield b'{"model":' + orjson.dumps(model) + b',"object":"list","data":['
    index = tokens = 0
    async with aclosing(slices):
        async for part in slices:
            assert part.colbert is not None  # noqa: S101 - asked for
            for row in range(len(part)):
                comma = b"," if index else b""
                yield b'%b{"object":"embeddings","index":%d,"embeddings":' % (comma, index)
                vectors = part.colbert.row(row)
                if packed:
                    yield b"[" + b",".join(map(base64_json, vectors)) + b"]"
                else:
                    for piece in numbers_json(vectors):
                        yield piece
                yield b"}"
                index += 1
            tokens += int(part.tokens.sum())
    yield b'],"usage":' + orjson.dumps({"total_tokens": tokens}) + b"}"
