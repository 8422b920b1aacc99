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
from pydantic import BaseModel, ConfigDict, Field, Tag

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
from service.load.pools import Pool
from service.routes.common import Services, TimeLimit, check_characters, json_response, router
from service.routes.texts import Fields, encoded_texts
from service.runtime import Runtime
from service.schemas.base import WHOLE, counted, told_apart
from service.schemas.search import TokenId

FIELDS = Fields("inputs")
GROUP_CHARACTERS = 2**14  # of the texts whose tokens are made at once
TOKENS_AT_ONCE = 2**12  # written by one call, which holds the interpreter's lock

routes = router("tei", 401, 403, 413, 422, 424, 429, 503, shape=TeiError)
open_routes = router("tei", 403, 413, 422, 503, shape=TeiError)


Direction = Literal["Left", "Right", "left", "right"]
TokenIds = Annotated[list[TokenId], Field(fail_fast=True)]


def _text_or_ids(value: object) -> str:
    return "text" if isinstance(value, str) else "ids" if isinstance(value, list) else ""


def _kind(value: object) -> str:
    """Ids of one text are a list of numbers."""
    if isinstance(value, list) and value and isinstance(value[0], int | float):
        return "ids"
    return "text" if isinstance(value, str) else "several" if isinstance(value, list) else ""


OneInput = Annotated[
    Annotated[str, Tag("text")] | Annotated[TokenIds, Tag("ids")],
    *told_apart(_text_or_ids, "a string or a list of token ids"),
]
Inputs = Annotated[
    Annotated[str, Tag("text")]
    | Annotated[TokenIds, Tag("ids")]
    | Annotated[list[OneInput], Field(fail_fast=True), counted("texts", "texts"), Tag("several")],
    *told_apart(_kind, "a string, a list of strings, or token ids"),
]
TextList = Annotated[list[str], Field(fail_fast=True)]


class TeiTruncation(CompatibleRequest):
    """How longer texts are treated."""

    truncate: bool | None = Field(
        None, description="false refuses texts that are too long, instead of a cut."
    )
    truncation_direction: Direction | None = Field(
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

    normalize: bool | None = Field(True, description="Without effect: the encoder's vectors have length 1.")
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
    texts: Annotated[TextList, counted("documents", "texts")]
    raw_scores: bool | None = Field(
        False, description="The three-way sum itself, instead of a value from 0 to 1."
    )
    return_text: bool | None = Field(False, description="Repeat each text in the answer.")


class TeiRank(BaseModel):
    """A text of the request by its place."""

    index: int
    score: float
    text: str | None = None


def _text_or_texts(value: object) -> str:
    return "text" if isinstance(value, str) else "texts" if isinstance(value, list) else ""


class TeiTokenizeRequest(CompatibleRequest):
    """Texts to split into tokens."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"inputs": "Tea is brewed."}]})

    inputs: Annotated[
        Annotated[str, Tag("text")] | Annotated[TextList, counted("texts", "texts"), Tag("texts")],
        *told_apart(_text_or_texts, "a string or a list of strings"),
    ]
    add_special_tokens: bool | None = True
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
    outcome = await ranked_texts(services, services.encoding, query, texts, deadline, param="texts")
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
    check_characters(texts, limits.characters, "inputs")
    kind = _input_type(body.prompt_name)
    pieces = _all_tokens(
        services.pools.bodies, tokenizer, texts, kind, special=body.add_special_tokens is not False
    )
    return await response_of(pieces)


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
    if body.truncate is False or body.truncation_direction not in ("Left", "left"):
        return texts
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
    texts = await services.pools.bodies.run(_texts, body.inputs, tokenizer)
    if not texts:
        return json_response([])
    texts = await _kept(services, body, texts, kind, "inputs")
    _, slices = await encoded_texts(
        services,
        services.encoding,
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


async def _all_tokens(
    pool: Pool, tokenizer: Tokenizer, texts: list[str], kind: InputType, *, special: bool
) -> AsyncGenerator[bytes]:
    """The answer's JSON. A token's takes many times the room of its text, so few are made at once."""
    separator, group, size = b"[", list[str](), 0
    for place, text in enumerate(texts):
        group.append(text)
        size += len(text)
        if size >= GROUP_CHARACTERS or place == len(texts) - 1:
            for piece in await pool.run(_tokens_json, tokenizer, group, kind, special=special):
                yield separator + piece
                separator = b""
            separator, group, size = b",", [], 0
    yield b"[]" if not texts else b"]"


def _tokens_json(tokenizer: Tokenizer, texts: list[str], kind: InputType, *, special: bool) -> list[bytes]:
    """The tokens of texts, a list of each, with commas between."""
    pieces = []
    for place, text in enumerate(texts):
        tokens = _tokens(tokenizer, text, kind, special=special)
        pieces.append(b",[" if place else b"[")
        for start in range(0, len(tokens), TOKENS_AT_ONCE):
            part = orjson.dumps(tokens[start : start + TOKENS_AT_ONCE])[1:-1]
            pieces.append(b"," + part if start else part)
        pieces.append(b"]")
    return pieces


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
