"""OpenAI's `POST /v1/embeddings` and `GET /v1/models`.

https://platform.openai.com/docs/api-reference/embeddings
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, cast

from fastapi import Depends, Query, Response
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, Tag
from pydantic_core import PydanticCustomError

from tercet.service.answers.pieces import response_of
from tercet.service.compat.names import models_of
from tercet.service.compat.request import CompatibleRequest, Dimensions, ModelName, encoder_of
from tercet.service.compat.vectors import AS_IT_IS, WRITTEN, vectors_json
from tercet.service.encoding.options import TextOptions
from tercet.service.exceptions import NotFoundError
from tercet.service.invalid_values import TOKEN_IDS
from tercet.service.routes.common import Services, TimeLimit, errors, json_response, router
from tercet.service.routes.texts import Fields, encoded_texts
from tercet.service.schemas.base import counted, told_apart

FIELDS = Fields("input")
IDS_REFUSED = (
    "it has token ids, and this server takes texts: it has another vocabulary. LangChain's "
    "OpenAIEmbeddings sends texts with check_embedding_ctx_length=False"
)

ApiVersion = Annotated[
    str | None, Query(alias="api-version", description="Passed over; clients for Azure send it.")
]


async def _pass_over(_version: ApiVersion = None) -> None:
    """Takes what Azure's clients send with every request, and this server has no use for."""


routes = router("openai", dependencies=[Depends(_pass_over)])


def _kind(value: object) -> str:
    """By the first item of a list: where it is none, texts are meant."""
    if isinstance(value, str):
        return "text"
    if not isinstance(value, list):
        return ""
    first = value[0] if value else ""
    if isinstance(first, list):
        return "ids of several"
    return "ids" if isinstance(first, int) and not isinstance(first, bool) else "texts"


def _refuse(_value: object) -> None:
    raise PydanticCustomError(TOKEN_IDS, IDS_REFUSED)


IntegerList = Annotated[list[int], Field(fail_fast=True)]
Input = Annotated[
    Annotated[str, Tag("text")]
    | Annotated[list[str], Field(min_length=1, fail_fast=True), counted("texts", "texts"), Tag("texts")]
    | Annotated[list[int], Field(fail_fast=True), BeforeValidator(_refuse), Tag("ids")]
    | Annotated[list[IntegerList], Field(fail_fast=True), BeforeValidator(_refuse), Tag("ids of several")],
    *told_apart(_kind, "a string or a list of strings"),
]


class OpenAIEmbeddingsRequest(CompatibleRequest):
    """Texts to embed, as OpenAI's clients send them."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"input": ["Tea is brewed with hot water."], "model": "tercet"}]}
    )

    input: Input = Field(
        description="One text or several. Token ids are refused: they are of another vocabulary."
    )
    model: ModelName = None
    encoding_format: Literal["float", "base64"] | None = Field(
        "float", description="`base64`: little-endian float32, as the official clients ask for."
    )
    dimensions: Dimensions = None
    input_type: Annotated[str, Field(max_length=100)] | None = Field(
        None, description="Not of OpenAI's: `query` encodes queries, anything else documents."
    )


class OpenAIEmbedding(BaseModel):
    """The dense vector of one text."""

    object: Literal["embedding"]
    index: int
    embedding: list[float] | str


class OpenAIUsage(BaseModel):
    """What a request cost."""

    prompt_tokens: int
    total_tokens: int


class OpenAIEmbeddingsResponse(BaseModel):
    """Dense vectors in the order of the texts."""

    object: Literal["list"]
    data: list[OpenAIEmbedding]
    model: str
    usage: OpenAIUsage


class OpenAIModel(BaseModel):
    """An encoder, or an adapter of the server's own."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class OpenAIModelsResponse(BaseModel):
    """What `model` may name."""

    object: Literal["list"]
    data: list[OpenAIModel]


# Some clients join paths with a slash at the end.
@routes.post("/v1/embeddings/", include_in_schema=False)
@routes.post("/v1/embeddings", response_model=OpenAIEmbeddingsResponse, responses=errors(422))
async def openai_embeddings(
    body: OpenAIEmbeddingsRequest, services: Services, deadline: TimeLimit
) -> Response:
    """Dense vectors in the shape of OpenAI's API. Longer texts are cut, as `/embed` does."""
    encoding, adapter = await encoder_of(services, body.model)
    info, slices = await encoded_texts(
        services,
        encoding,
        _texts(body.input),
        FIELDS,
        deadline,
        TextOptions(
            outputs=["dense"],
            input_type="query" if body.input_type == "query" else "document",
            adapter=adapter,
        ),
        dimensions=body.dimensions,
    )
    form = WRITTEN["base64" if body.encoding_format == "base64" else "float"]
    pieces = vectors_json(slices, adapter or info.name, form)
    with services.telemetry.stage("encode"):
        return await response_of(pieces, headers=AS_IT_IS)


@routes.get("/v1/models/", include_in_schema=False)
@routes.get("/v1/models", response_model=OpenAIModelsResponse)
async def openai_models(services: Services) -> Response:
    """The server's own encoder, its adapters and routers, and the other encoders that it opens when asked."""
    return json_response({"object": "list", "data": [_model(name) for name in await models_of(services)]})


@routes.get("/v1/models/{model:path}", response_model=OpenAIModel, responses=errors(404, 422))
async def openai_model(model: str, services: Services) -> Response:
    """One of them."""
    if model not in await models_of(services):
        raise NotFoundError(
            f"there is no model {model[:100]!r}; GET /v1/models lists those there are", "model_not_found"
        )
    return json_response(_model(model))


def _texts(given: str | list[str] | list[int] | list[list[int]]) -> list[str]:
    return [given] if isinstance(given, str) else cast("list[str]", given)  # ids are refused before


def _model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "tercet"}
