"""Jina's `POST /jina/v1/embeddings`, `/jina/v1/multi-vector` and `/jina/v1/rerank`.

https://api.jina.ai/redoc
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated, Literal

import orjson
from fastapi import Response
from pydantic import BaseModel, ConfigDict, Field, Tag

from tercet.models.representations import Representations
from tercet.service.answers.embeddings import base64_json, numbers_json
from tercet.service.answers.pieces import response_of
from tercet.service.compat.request import (
    CompatibleRequest,
    Dimensions,
    Flag,
    ModelName,
    encoder_of,
    text_or_texts,
)
from tercet.service.compat.rerank import RerankedResult, TextRequest, ranked_texts, result_record, texts_of
from tercet.service.compat.vectors import AS_IT_IS, WRITTEN, VectorForm, vectors_json
from tercet.service.encoding.options import TextOptions
from tercet.service.exceptions import InvalidRequestError
from tercet.service.http.error_shapes import JinaError
from tercet.service.routes.common import EDGE, Services, TimeLimit, json_response, router
from tercet.service.routes.texts import Fields, encoded_texts
from tercet.service.schemas.base import WHOLE, counted, told_apart

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
    return_documents: Flag | None = Field(True, description="Repeat each text in the answer.")


class JinaUsage(BaseModel):
    """What a request cost."""

    total_tokens: int


class JinaRerankResponse(BaseModel):
    """Texts, best first."""

    model: str
    usage: JinaUsage
    results: list[RerankedResult]


class JinaEmbeddingsRequest(CompatibleRequest):
    """Texts to embed, as Jina's clients send them."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"model": "tercet", "task": "retrieval.passage", "input": ["Tea is brewed with hot water."]}
            ]
        }
    )

    input: Annotated[
        Annotated[str, Tag("text")]
        | Annotated[
            list[TextRequest], Field(min_length=1, fail_fast=True), counted("texts", "texts"), Tag("texts")
        ],
        *told_apart(text_or_texts, "a string or a list of texts"),
    ] = Field(description="A text or several, or objects with a `text`.")
    model: ModelName = None
    task: Annotated[str, Field(max_length=100)] | None = Field(
        None, description="One that ends in `.query` encodes queries, anything else documents."
    )
    dimensions: Dimensions = None
    embedding_type: (
        Annotated[
            Annotated[VectorForm, Tag("text")]
            | Annotated[list[VectorForm], Field(min_length=1, max_length=4, fail_fast=True), Tag("texts")],
            *told_apart(text_or_texts, "float, base64, binary or ubinary"),
        ]
        | None
    ) = Field("float", description="One of them; `base64`: little-endian float32.")
    normalized: bool | None = Field(True, description="Without effect: the encoder's vectors have length 1.")
    truncate: bool | None = Field(True, description="false refuses longer texts, which are cut else.")
    late_chunking: bool | None = Field(False, description="Refused where true.")
    return_multivector: bool | None = Field(
        False, description="Refused where true; `/jina/v1/multi-vector` gives such vectors."
    )


class JinaEmbeddingsUsage(BaseModel):
    """What a request cost."""

    prompt_tokens: int
    total_tokens: int


class JinaEmbedding(BaseModel):
    """The dense vector of one text."""

    object: Literal["embedding"]
    index: int
    embedding: list[float] | str


class JinaEmbeddingsResponse(BaseModel):
    """Dense vectors in the order of the texts."""

    model: str
    object: Literal["list"]
    usage: JinaEmbeddingsUsage
    data: list[JinaEmbedding]


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
    dimensions: Dimensions = Field(None, description="Only the encoder's own: ColBERT vectors cannot be cut.")


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


@routes.post("/jina/v1/embeddings", response_model=JinaEmbeddingsResponse)
async def jina_embeddings(body: JinaEmbeddingsRequest, services: Services, deadline: TimeLimit) -> Response:
    """Dense vectors in the shape of Jina's API."""
    form = _offered(body)
    encoding, adapter = await encoder_of(services, body.model)
    info, slices = await encoded_texts(
        services,
        encoding,
        texts_of([body.input] if isinstance(body.input, str) else body.input, "input"),
        FIELDS,
        deadline,
        TextOptions(
            input_type="query" if (body.task or "").endswith(".query") else "document",
            outputs=["dense"],
            truncate=body.truncate is not False,
            adapter=adapter,
        ),
        dimensions=body.dimensions,
    )
    if form in ("binary", "ubinary") and (body.dimensions or info.dense_dimension) % 8:
        await slices.aclose()
        raise InvalidRequestError(
            f"{body.dimensions or info.dense_dimension} values make no whole bytes: take a multiple of 8",
            "dimensions",
        )
    pieces = vectors_json(slices, adapter or info.name, WRITTEN[form])
    with services.telemetry.stage("encode"):
        return await response_of(pieces, headers=AS_IT_IS)


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
    results = [result_record(one, outcome.sides) for one in outcome.results]
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
        TextOptions(input_type=body.input_type or "document", outputs=["colbert"], adapter=adapter),
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


def _offered(body: JinaEmbeddingsRequest) -> VectorForm:
    """The form of the vectors. Raises InvalidRequestError for what this server does not do."""
    if body.late_chunking:
        raise InvalidRequestError(
            "late_chunking is true; this server encodes each text by itself: leave it out, or put whole "
            "documents into a collection with windows",
            "late_chunking",
            "unsupported",
        )
    if body.return_multivector:
        raise InvalidRequestError(
            "return_multivector is true; ask /jina/v1/multi-vector, which gives a vector for each token",
            "return_multivector",
            "unsupported",
        )
    asked = body.embedding_type or "float"
    if isinstance(asked, str):
        return asked
    if len(asked) > 1:
        raise InvalidRequestError(
            f"embedding_type has {len(asked)} forms; ask for one at a time", "embedding_type", "unsupported"
        )
    return asked[0]


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
