"""Ollama's `POST /api/embed` and `/api/embeddings`, and what its clients ask of models.

https://docs.ollama.com/api
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from importlib.metadata import version
from typing import Annotated, Any

import orjson
from fastapi import Response
from pydantic import BaseModel, ConfigDict, Field, Tag

from tercet.models.representations import Representations
from tercet.service.answers.embeddings import numbers_json
from tercet.service.answers.pieces import response_of
from tercet.service.compat.names import models_of
from tercet.service.compat.request import (
    CompatibleRequest,
    Dimensions,
    ModelName,
    encoder_of,
    text_or_texts,
    whole,
)
from tercet.service.encoding.options import TextOptions
from tercet.service.http.error_shapes import OllamaError
from tercet.service.routes.common import EDGE, Services, TimeLimit, json_response, router
from tercet.service.routes.texts import Fields, encoded_texts
from tercet.service.schemas.base import counted, told_apart

FIELDS = Fields("input")
PROMPT = Fields("prompt")
LATEST = ":latest"  # which Ollama's clients add to a name
UNDATED = "1970-01-01T00:00:00Z"  # a checkpoint does not say when it was made
KIND = "bert"  # whose keys `model_info` has

routes = router("ollama", *EDGE, 503, shape=OllamaError)


class OllamaEmbedRequest(CompatibleRequest):
    """Texts to embed, as Ollama's clients send them."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"model": "tercet", "input": ["Tea is brewed with hot water."]}]}
    )

    model: ModelName = None
    input: Annotated[
        Annotated[str, Tag("text")]
        | Annotated[list[str], Field(fail_fast=True), counted("texts", "texts"), Tag("texts")],
        *told_apart(text_or_texts, "a string or a list of strings"),
    ] = Field(description="One text or several.")
    truncate: bool | None = Field(True, description="Cut longer texts; otherwise they are errors.")
    dimensions: Dimensions = None


class OllamaEmbedResponse(BaseModel):
    """Dense vectors in the order of the texts; durations in nanoseconds."""

    model: str
    embeddings: list[list[float]]
    total_duration: int
    load_duration: int
    prompt_eval_count: int = Field(description="Tokens encoded.")


class OllamaEmbeddingsRequest(CompatibleRequest):
    """One text to embed, as older clients of Ollama send it."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"model": "tercet", "prompt": "Tea is brewed with hot water."}]}
    )

    model: ModelName = None
    prompt: str = Field(description="The text.")


class OllamaEmbeddingsResponse(BaseModel):
    """The dense vector of the text; nothing for an empty one."""

    embedding: list[float]


class OllamaShowRequest(CompatibleRequest):
    """Which model is asked about."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"model": "tercet"}]})

    model: ModelName = None


class OllamaDetails(BaseModel):
    """What kind of model it is."""

    parent_model: str
    format: str
    family: str
    families: list[str]
    parameter_size: str
    quantization_level: str


class OllamaModel(BaseModel):
    """What `model` may name."""

    name: str
    model: str
    modified_at: str
    size: int
    digest: str
    details: OllamaDetails


class OllamaTagsResponse(BaseModel):
    """The models of this server."""

    models: list[OllamaModel]


class OllamaShowResponse(BaseModel):
    """A model: what it can, its sizes, its limit in tokens."""

    model_config = ConfigDict(protected_namespaces=())

    modified_at: str
    details: OllamaDetails
    model_info: dict[str, Any]
    capabilities: list[str]


class OllamaVersionResponse(BaseModel):
    """The server's version."""

    version: str


@routes.post("/api/embed", response_model=OllamaEmbedResponse)
async def ollama_embed(body: OllamaEmbedRequest, services: Services, deadline: TimeLimit) -> Response:
    """Dense vectors in the shape of Ollama's API."""
    began = time.perf_counter_ns()
    encoding, adapter = await encoder_of(services, _name(body.model))
    texts = [body.input] if isinstance(body.input, str) else body.input
    if not texts:
        return await response_of(_embeddings(None, adapter or encoding.info.name, began))
    info, slices = await encoded_texts(
        services,
        encoding,
        texts,
        FIELDS,
        deadline,
        TextOptions(outputs=["dense"], truncate=body.truncate is not False, adapter=adapter),
        dimensions=body.dimensions,
    )
    with services.telemetry.stage("encode"):
        return await response_of(_embeddings(slices, adapter or info.name, began))


@routes.post("/api/embeddings", response_model=OllamaEmbeddingsResponse)
async def ollama_embeddings(
    body: OllamaEmbeddingsRequest, services: Services, deadline: TimeLimit
) -> Response:
    """The dense vector of one text in the shape of Ollama's former route."""
    if not body.prompt:
        return json_response({"embedding": []})
    encoding, adapter = await encoder_of(services, _name(body.model))
    _, slices = await encoded_texts(
        services, encoding, [body.prompt], PROMPT, deadline, TextOptions(outputs=["dense"], adapter=adapter)
    )
    with services.telemetry.stage("encode"):
        (part,) = await whole(slices)
    assert part.dense is not None  # noqa: S101 - asked for
    numbers = b"".join(numbers_json(part.dense[0]))
    return Response(b'{"embedding":%b}' % numbers, media_type="application/json")


@routes.get("/api/tags", response_model=OllamaTagsResponse)
async def ollama_tags(services: Services) -> Response:
    """The server's own encoder, its adapters and routers, and the other encoders that it opens when asked."""
    own = services.encoding.info
    records = [
        {
            "name": name,
            "model": name,
            "modified_at": UNDATED,
            "size": 0,
            "digest": own.fingerprint if name == own.name else "",
            "details": _details(own.precision if name == own.name else ""),
        }
        for name in await models_of(services)
    ]
    return json_response({"models": records})


@routes.post("/api/show", response_model=OllamaShowResponse)
async def ollama_show(body: OllamaShowRequest, services: Services) -> Response:
    """What a model is: its number of dimensions and its limit in tokens."""
    encoding, adapter = await encoder_of(services, _name(body.model))
    info = await encoding.info_of(adapter)
    return json_response(
        {
            "modified_at": UNDATED,
            "details": _details(info.precision),
            "model_info": {
                "general.architecture": KIND,
                "general.basename": adapter or info.name,
                f"{KIND}.context_length": info.max_length,
                f"{KIND}.embedding_length": info.dense_dimension,
            },
            "capabilities": ["embedding"],
        }
    )


@routes.get("/api/version", response_model=OllamaVersionResponse)
async def ollama_version() -> Response:
    """The version of Tercet."""
    return json_response({"version": version("tercet")})


def _name(model: str | None) -> str | None:
    return None if model is None else model.removesuffix(LATEST)


def _details(precision: str) -> dict[str, Any]:
    return {
        "parent_model": "",
        "format": "",
        "family": KIND,
        "families": [KIND],
        "parameter_size": "",
        "quantization_level": precision,
    }


async def _embeddings(
    slices: AsyncGenerator[Representations] | None, model: str, began: int
) -> AsyncGenerator[bytes]:
    """The answer's body, some texts at a time. began: in nanoseconds of `time.perf_counter_ns`."""
    yield b'{"model":' + orjson.dumps(model) + b',"embeddings":['
    tokens, separator = 0, b""
    if slices is not None:
        async with aclosing(slices):
            async for part in slices:
                assert part.dense is not None  # noqa: S101 - asked for
                for vector in part.dense:
                    yield separator + b"".join(numbers_json(vector))
                    separator = b","
                tokens += int(part.tokens.sum())
    counts = {
        "total_duration": time.perf_counter_ns() - began,
        "load_duration": 0,
        "prompt_eval_count": tokens,
    }
    yield b"]," + orjson.dumps(counts)[1:]
