"""The routes of Text Embeddings Inference, below `/tei`.

https://huggingface.github.io/text-embeddings-inference
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from importlib.metadata import version
from typing import Annotated, Any, Literal, cast

import numpy as np
import orjson
from fastapi import Response
from pydantic import BaseModel, ConfigDict, Field

from models.representations import InputType, Output, Representations
from models.tokenizer import Tokenizer
from service.answers.embeddings import numbers_json
from service.answers.pieces import response_of
from service.compat.error_shapes import TeiError
from service.compat.relevance import relevance
from service.compat.request import CompatibleRequest
from service.compat.rerank import ranked_texts
from service.exceptions import InvalidRequestError
from service.load.deadlines import Deadline
from service.routes.common import Services, TimeLimit, check_characters, check_count, json_response, router
from service.routes.texts import Fields, encoded_texts
from service.runtime import Runtime
from service.schemas.base import WHOLE
from service.schemas.search import TokenId

FIELDS = Fields("inputs")

routes = router("tei", 401, 403, 413, 422, 424, 429, 503, shape=TeiError)
open_routes = router("tei", 403, 413, 422, 503, shape=TeiError)


Direction = Literal["Left", "Right", "left", "right"]
TokenIds = list[TokenId]
Inputs = str | list[str] | TokenIds | list[TokenIds] | list[str | TokenIds]


class TeiTruncation(CompatibleRequest):
    """How longer texts are treated."""

    truncate: bool | None = Field(
        None, description="false refuses texts that are too long, instead of a cut."
    )
    truncation_direction: Direction = Field(
        "Right", description="The end of a longer text that is cut; `Left` keeps its last words."
    )


class TeiInputs(TeiTruncation):
    """Texts to encode, as clients of Text Embeddings Inference send them."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"inputs": ["Tea is brewed with hot water."]}]})

    inputs: Inputs = Field(
        description="One text or several, or their token ids in this encoder's vocabulary, which are read "
        "back as text."
    )
    prompt_name: str | None = Field(None, description="`query` is a query, anything else a document.")


class TeiEmbedRequest(TeiInputs):
    """Texts whose dense vectors are wanted."""

    normalize: bool = Field(True, description="Without effect: the encoder's vectors have length 1.")
    dimensions: Annotated[int, Field(ge=0), WHOLE] | None = Field(
        None,
        description="Keep this many values of each vector, normalized again; 0, or more than there are, "
        "keeps all.",
    )


class TeiSparseValue(BaseModel):
    """A lexical weight."""

    index: int
    value: float


class TeiRerankRequest(TeiTruncation):
    """Texts to order, as clients of Text Embeddings Inference send them."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"query": "how is tea made", "texts": ["Tea is brewed with hot water.", "Coffee is ground."]}
            ]
        }
    )

    query: str
    texts: list[str]
    raw_scores: bool = Field(False, description="The three-way sum itself, instead of a value from 0 to 1.")
    return_text: bool = Field(False, description="Repeat each text in the answer.")


class TeiRank(BaseModel):
    """A text of the request by its place."""

    index: int
    score: float
    text: str | None = None


class TeiTokenizeRequest(CompatibleRequest):
    """Texts to split into tokens."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"inputs": "Tea is brewed."}]})

    inputs: str | list[str]
    add_special_tokens: bool = True
    prompt_name: str | None = Field(None, description="`query` is a query, anything else a document.")


class TeiToken(BaseModel):
    """A token; start and stop are characters of its text, null for a special token."""

    id: int
    text: str
    special: bool
    start: int | None
    stop: int | None


class TeiInfo(BaseModel):
    """What this server is, as Text Embeddings Inference says it."""

    model_id: str
    model_sha: str | None
    model_dtype: str
    served_model_name: str
    model_type: dict[str, Any]
    max_concurrent_requests: int
    max_input_length: int
    max_batch_tokens: int
    max_batch_requests: int | None
    max_client_batch_size: int
    auto_truncate: bool
    tokenization_workers: int
    version: str
    sha: str | None
    docker_label: str | None


# Clients that are given the base address alone ask it for dense vectors.
@routes.post("/tei", include_in_schema=False)
@routes.post("/tei/", include_in_schema=False)
@routes.post("/tei/embed", response_model=list[list[float]])
async def tei_embed(body: TeiEmbedRequest, services: Services, deadline: TimeLimit) -> Response:
    """Dense vectors."""
    # Its description sets no limit, so that a client may ask for more than any encoder has.
    most = services.encoding.info.dense_dimension
    dimensions = None if not body.dimensions or body.dimensions > most else body.dimensions
    return await _encoded(body, services, deadline, "dense", _dense, dimensions)


@routes.post("/tei/embed_sparse", response_model=list[list[TeiSparseValue]])
async def tei_embed_sparse(body: TeiInputs, services: Services, deadline: TimeLimit) -> Response:
    """Lexical weights by token id."""
    return await _encoded(body, services, deadline, "sparse", _sparse)


@routes.post("/tei/embed_all", response_model=list[list[list[float]]])
async def tei_embed_all(body: TeiInputs, services: Services, deadline: TimeLimit) -> Response:
    """ColBERT vectors, one for each token."""
    return await _encoded(body, services, deadline, "colbert", _colbert)


@routes.post("/tei/rerank", response_model=list[TeiRank])
async def tei_rerank(body: TeiRerankRequest, services: Services, deadline: TimeLimit) -> Response:
    """Texts by their three-way score with a query, best first."""
    if not body.texts:
        return json_response([])
    (query,) = await _kept(services, body, [body.query], "query", "query")
    texts = await _kept(services, body, body.texts, "document", "texts")
    outcome = await ranked_texts(services, query, texts, deadline, param="texts")
    cut = next((one.index for one in outcome.results if one.truncated), None)
    if body.truncate is False and (cut is not None or outcome.query_truncated):
        raise InvalidRequestError(
            f"{'query' if cut is None else f'texts.{cut}'} is longer than the encoder's "
            f"{services.encoding.info.max_length} tokens; shorten it, or let it be cut with truncate",
            "query" if cut is None else f"texts.{cut}",
            "text_too_long",
        )
    return json_response(
        [
            {
                "index": one.index,
                "score": one.score if body.raw_scores else relevance(one.score),
                **({"text": body.texts[one.index]} if body.return_text else {}),
            }
            for one in outcome.results
        ]
    )


@routes.post("/tei/tokenize", response_model=list[list[TeiToken]])
async def tei_tokenize(body: TeiTokenizeRequest, services: Services) -> Response:
    """The tokens of texts, however long."""
    texts = [body.inputs] if isinstance(body.inputs, str) else body.inputs
    limits, tokenizer = services.limits, services.encoding.tokenizer
    check_count(texts, limits.texts, "inputs", "max_texts")
    check_characters(texts, limits.characters, "inputs")
    kind = _input_type(body.prompt_name)
    content = await services.pools.bodies.run(
        _tokens_json, tokenizer, texts, kind, special=body.add_special_tokens
    )
    return Response(content, media_type="application/json")


@routes.get("/tei/info", response_model=TeiInfo)
async def tei_info(services: Services) -> Response:
    """The encoder and the limits of requests."""
    info, settings = services.encoding.info, services.settings
    return json_response(
        {
            "model_id": info.name,
            "model_sha": info.fingerprint,
            "model_dtype": info.precision,
            "served_model_name": info.name,
            "model_type": {"embedding": {"pooling": info.pooling}},
            "max_concurrent_requests": settings.max_concurrent_requests,
            "max_input_length": info.max_length,
            "max_batch_tokens": settings.batch_tokens,
            "max_batch_requests": None,
            "max_client_batch_size": services.limits.texts,
            "auto_truncate": True,
            "tokenization_workers": 1,
            "version": version("tercet"),
            "sha": None,
            "docker_label": None,
        }
    )


@open_routes.get("/tei/health", response_class=Response)
async def tei_health(services: Services) -> Response:
    """Whether requests can be answered. Needs no key."""
    await services.ready()
    return Response()


async def _kept(
    services: Runtime, body: TeiTruncation, texts: list[str], kind: InputType, param: str
) -> list[str]:
    """The texts, cut at their beginning where that is asked for."""
    if body.truncate is False or body.truncation_direction.lower() == "right":
        return texts
    check_count(texts, services.limits.texts, param, "max_texts")
    check_characters(texts, services.limits.characters, param)
    return await services.pools.bodies.run(_tails, services.encoding.tokenizer, texts, kind)


async def _encoded(
    body: TeiInputs,
    services: Runtime,
    deadline: Deadline,
    output: Output,
    write: Callable[[Representations, int], Iterator[bytes]],
    dimensions: int | None = None,
) -> Response:
    """A list with one representation of each text. write: that of a row."""
    kind, tokenizer = _input_type(body.prompt_name), services.encoding.tokenizer
    texts = _texts(body.inputs, tokenizer)
    if not texts:
        return json_response([])
    texts = await _kept(services, body, texts, kind, "inputs")
    _, slices = await encoded_texts(
        services,
        texts,
        FIELDS,
        deadline,
        input_type=kind,
        outputs=[output],
        truncate=body.truncate is not False,
        dimensions=dimensions,
    )
    with services.telemetry.stage("encode"):
        return await response_of(_listed(slices, write))


def _texts(inputs: Inputs, tokenizer: Tokenizer) -> list[str]:
    """The texts; ids of one text are a list of numbers."""
    if isinstance(inputs, str):
        return [inputs]
    if inputs and isinstance(inputs[0], int):
        return [tokenizer.text_of(inputs)]
    return [
        text if isinstance(text, str) else tokenizer.text_of(text)
        for text in cast("list[str | list[int]]", inputs)
    ]


def _input_type(prompt_name: str | None) -> InputType:
    return "query" if prompt_name == "query" else "document"


def _tails(tokenizer: Tokenizer, texts: list[str], kind: InputType) -> list[str]:
    return [tokenizer.tail(text, kind) for text in texts]


async def _listed(
    slices: AsyncGenerator[Representations], write: Callable[[Representations, int], Iterator[bytes]]
) -> AsyncGenerator[bytes]:
    separator = b"["
    async with aclosing(slices):
        async for part in slices:
            for row in range(len(part)):
                yield separator
                for piece in write(part, row):
                    yield piece
                separator = b","
    yield b"]"


def _dense(part: Representations, row: int) -> Iterator[bytes]:
    assert part.dense is not None  # noqa: S101 - asked for
    return numbers_json(part.dense[row])


def _colbert(part: Representations, row: int) -> Iterator[bytes]:
    assert part.colbert is not None  # noqa: S101 - asked for
    return numbers_json(part.colbert.row(row))


def _sparse(part: Representations, row: int) -> Iterator[bytes]:
    assert part.sparse is not None  # noqa: S101 - asked for
    ids, weights = part.sparse.row(row)
    pairs = zip(ids.tolist(), weights.astype(np.float64).round(7).tolist(), strict=True)
    yield orjson.dumps([{"index": index, "value": value} for index, value in pairs])


def _tokens_json(tokenizer: Tokenizer, texts: list[str], kind: InputType, *, special: bool) -> bytes:
    return orjson.dumps([_tokens(tokenizer, text, kind, special=special) for text in texts])


def _tokens(tokenizer: Tokenizer, text: str, kind: InputType, *, special: bool) -> list[dict[str, Any]]:
    """The tokens of a text after the instruction of its kind, which start and stop count, too."""
    text = tokenizer.instruction(kind) + text
    spans = tokenizer.spans(text)
    places = zip(spans.token_ids.tolist(), spans.starts.tolist(), spans.ends.tolist(), strict=True)
    tokens: list[dict[str, Any]] = [
        {"id": id, "text": text[start:stop], "special": False, "start": start, "stop": stop}
        for id, start, stop in places
    ]
    if not special:
        return tokens
    first, last = tokenizer.frame
    return [*_special(tokenizer, first), *tokens, *_special(tokenizer, last)]


def _special(tokenizer: Tokenizer, token_ids: Any) -> list[dict[str, Any]]:
    return [
        {"id": id, "text": text, "special": True, "start": None, "stop": None}
        for id, text in zip(token_ids.tolist(), tokenizer.token_strings(token_ids), strict=True)
    ]
