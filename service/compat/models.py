"""What clients of other services ask of the server's models: OpenAI's `/v1/models`, Ollama's `/api/tags`,
`/api/show` and `/api/version`, and `/tei/info` and `/tei/health` of Text Embeddings Inference.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from fastapi import Response

from tercet.service.compat.apis import OLLAMA, OPENAI, TEI
from tercet.service.compat.fields import NAME
from tercet.service.compat.ollama import OLLAMA_MODEL
from tercet.service.compat.request import encoder_of
from tercet.service.compat.shapes import (
    CompatibleRequest,
    Fixed,
    Shape,
    Slot,
    answer,
    filled,
    request,
)
from tercet.service.encoding.service import BATCH_TOKENS
from tercet.service.exceptions import NotFoundError
from tercet.service.http.error_shapes import TeiError
from tercet.service.routes.common import Services, errors, json_response, router
from tercet.service.runtime import Runtime

openai_routes, ollama_routes, tei_routes = OPENAI(), OLLAMA(), TEI()
open_routes = router("tei", 403, 413, 422, 503, shape=TeiError)

BERT = "bert"  # whose keys `model_info` of Ollama has
EMPTY, ZERO, NOTHING = Fixed(str, ""), Fixed(int, 0), Fixed(str | None, None)
UNDATED = Fixed(str, "1970-01-01T00:00:00Z")  # a checkpoint does not say when it was made
PRECISION, MAX_LENGTH = Slot("precision", str), Slot("max_length", int)
OPENAI_MODEL = answer(
    "OpenAIModel",
    "An encoder, or an adapter of the server's own.",
    id=NAME,
    object="model",
    created=ZERO,
    owned_by=Fixed(str, "tercet"),
)
OPENAI_MODELS = answer("OpenAIModelsResponse", "What `model` may name.", object="list", data=[OPENAI_MODEL])
OLLAMA_DETAILS = answer(
    "OllamaDetails",
    "What kind of model it is.",
    parent_model=EMPTY,
    format=EMPTY,
    family=Fixed(str, BERT),
    families=Fixed(list[str], [BERT]),
    parameter_size=EMPTY,
    quantization_level=PRECISION,
)
OLLAMA_TAG = answer(
    "OllamaModel",
    "What `model` may name.",
    name=NAME,
    model=NAME,
    modified_at=UNDATED,
    size=ZERO,
    digest=Slot("digest", str),
    details=OLLAMA_DETAILS,
)
OLLAMA_TAGS = answer("OllamaTagsResponse", "The models of this server.", models=[OLLAMA_TAG])
OLLAMA_SHOW = request(
    "OllamaShowRequest", "Which model is asked about.", {"model": "tercet"}, model=OLLAMA_MODEL
)
OLLAMA_SHOWN = answer(
    "OllamaShowResponse",
    "A model: what it can, its sizes, its limit in tokens.",
    modified_at=UNDATED,
    details=OLLAMA_DETAILS,
    model_info={
        "general.architecture": BERT,
        "general.basename": NAME,
        f"{BERT}.context_length": MAX_LENGTH,
        f"{BERT}.embedding_length": Slot("dimension", int),
    },
    capabilities=Fixed(list[str], ["embedding"]),
)
VERSION = Slot("version", str)
OLLAMA_VERSION = answer("OllamaVersionResponse", "The server's version.", version=VERSION)
TEI_INFO = answer(
    "TeiInfo",
    "What this server is, as Text Embeddings Inference says it.",
    model_id=NAME,
    model_sha=Slot("digest", str | None),
    model_dtype=PRECISION,
    served_model_name=NAME,
    model_type={"embedding": {"pooling": Slot("pooling", str)}},
    max_concurrent_requests=Slot("requests", int),
    max_input_length=MAX_LENGTH,
    max_batch_tokens=Slot("batch_tokens", int),
    max_batch_requests=Fixed(int | None, None),
    max_client_batch_size=Slot("texts", int),
    auto_truncate=Fixed(bool, value=True),
    tokenization_workers=Fixed(int, 1),
    version=VERSION,
    sha=NOTHING,
    docker_label=NOTHING,
)


def _answer(shape: Shape, **values: Any) -> Response:
    return json_response(filled(shape, values))


async def _names(services: Runtime) -> list[str]:
    """The server's own encoder, its adapters and routers that can be used, and the other encoders."""
    adapters = await services.encoding.adapters()
    usable = (adapter.name for adapter in adapters if adapter.fingerprint is not None)
    own, *others = await services.encoders.names()
    return [own, *usable, *others]


@openai_routes.get("/v1/models/", include_in_schema=False)
@openai_routes.get("/v1/models", response_model=OPENAI_MODELS.model)
async def openai_models(services: Services) -> Response:
    """The server's own encoder, its adapters and routers, and the other encoders that it opens when asked."""
    rows = [filled(OPENAI_MODEL, {"model": name}) for name in await _names(services)]
    return _answer(OPENAI_MODELS, rows=rows)


@openai_routes.get("/v1/models/{model:path}", response_model=OPENAI_MODEL.model, responses=errors(404, 422))
async def openai_model(model: str, services: Services) -> Response:
    """One of them."""
    if model not in await _names(services):
        raise NotFoundError(
            f"there is no model {model[:100]!r}; GET /v1/models lists those there are", "model_not_found"
        )
    return _answer(OPENAI_MODEL, model=model)


@ollama_routes.get("/api/tags", response_model=OLLAMA_TAGS.model)
async def ollama_tags(services: Services) -> Response:
    """The server's own encoder, its adapters and routers, and the other encoders that it opens when asked."""
    own = services.encoding.info
    known = {own.name: {"digest": own.fingerprint, "precision": own.precision}}
    unknown = {"digest": "", "precision": ""}
    rows = [
        filled(OLLAMA_TAG, {"model": name, **known.get(name, unknown)}) for name in await _names(services)
    ]
    return _answer(OLLAMA_TAGS, rows=rows)


@ollama_routes.get("/api/version", response_model=OLLAMA_VERSION.model)
async def ollama_version() -> Response:
    """The version of Tercet."""
    return _answer(OLLAMA_VERSION, version=version("tercet"))


@tei_routes.get("/tei/info", response_model=TEI_INFO.model)
async def tei_info(services: Services) -> Response:
    """The encoder and the limits of requests."""
    info, settings = services.encoding.info, services.settings
    return _answer(
        TEI_INFO,
        model=info.name,
        digest=info.fingerprint,
        precision=info.precision,
        pooling=info.pooling,
        requests=settings.max_concurrent_requests,
        max_length=info.max_length,
        batch_tokens=settings.batch_tokens or BATCH_TOKENS,
        texts=services.limits.texts,
        version=version("tercet"),
    )


@open_routes.get("/tei/health", response_class=Response)
async def tei_health(services: Services) -> Response:
    """Whether requests can be answered. Needs no key."""
    await services.ready()
    return Response()


async def _shown(body: CompatibleRequest, services: Services) -> Response:
    """What a model is: its number of dimensions and its limit in tokens."""
    read, _ = OLLAMA_SHOW.read(body)
    encoding, adapter = await encoder_of(services, read["model"])
    info = await encoding.info_of(adapter)
    return _answer(
        OLLAMA_SHOWN,
        model=adapter or info.name,
        precision=info.precision,
        max_length=info.max_length,
        dimension=info.dense_dimension,
    )


_shown.__annotations__["body"] = OLLAMA_SHOW.model
ollama_routes.add_api_route(
    "/api/show", _shown, methods=["POST"], name="ollama_show", response_model=OLLAMA_SHOWN.model
)
routes = [openai_routes, ollama_routes, tei_routes, open_routes]
