"""The routes of Text Embeddings Inference, below `/tei`.

https://huggingface.github.io/text-embeddings-inference
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from importlib.metadata import version
from typing import Any, cast

import numpy as np
import orjson
from fastapi import Response

from tercet.models.representations import Float32, InputType, Output, Representations
from tercet.models.tokenizer import Tokenizer
from tercet.service.answers.embeddings import numbers_json
from tercet.service.answers.pieces import response_of
from tercet.service.compat.openai import OpenAIEmbeddingsRequest, OpenAIEmbeddingsResponse, openai_embeddings
from tercet.service.compat.relevance import relevance
from tercet.service.compat.request import whole
from tercet.service.compat.rerank import ranked_texts
from tercet.service.compat.tei_shapes import (
    NO_PARAMETERS,
    Inputs,
    TeiDecodeRequest,
    TeiEmbedRequest,
    TeiInfo,
    TeiInputs,
    TeiRank,
    TeiRerankRequest,
    TeiSimilarityRequest,
    TeiSparseValue,
    TeiToken,
    TeiTokenizeRequest,
    TeiTruncation,
)
from tercet.service.encoding.options import TextOptions
from tercet.service.encoding.service import BATCH_TOKENS
from tercet.service.exceptions import InvalidRequestError
from tercet.service.http.error_shapes import TeiError
from tercet.service.load.deadlines import Deadline
from tercet.service.load.pools import Pool
from tercet.service.routes.common import Services, TimeLimit, check_characters, json_response, router
from tercet.service.routes.texts import Fields, encoded_texts
from tercet.service.runtime import Runtime

FIELDS = Fields("inputs")
SENTENCES = Fields("inputs.sentences")
GROUP_CHARACTERS = 2**14  # of the texts whose tokens are made at once
TOKENS_AT_ONCE = 2**12  # written by one call, which holds the interpreter's lock

routes = router("tei", 401, 403, 413, 422, 424, 429, 503, shape=TeiError)
open_routes = router("tei", 403, 413, 422, 503, shape=TeiError)


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


@routes.post("/tei/v1/embeddings", response_model=OpenAIEmbeddingsResponse)
async def tei_openai_embeddings(
    body: OpenAIEmbeddingsRequest, services: Services, deadline: TimeLimit
) -> Response:
    """Dense vectors in the shape of OpenAI's API, which Text Embeddings Inference has, too."""
    return await openai_embeddings(body, services, deadline)


@routes.post("/tei/rerank", response_model=list[TeiRank])
async def tei_rerank(body: TeiRerankRequest, services: Services, deadline: TimeLimit) -> Response:
    """Texts by their three-way score with a query, best first."""
    if not body.texts:
        return json_response([])
    (query,) = await _kept(services, body, [body.query], "query", "query")
    texts = await _kept(services, body, body.texts, "document", "texts")
    outcome = await ranked_texts(services, services.encoding, query, texts, deadline, param="texts")
    cut = next((one.index for one in outcome.results if one.truncated), None)
    if body.truncate is False and (cut is not None or outcome.query.truncated):
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


@routes.post("/tei/similarity", response_model=list[float])
async def tei_similarity(body: TeiSimilarityRequest, services: Services, deadline: TimeLimit) -> Response:
    """The cosine of the dense vectors of a sentence and of each of the others."""
    asked = body.parameters or NO_PARAMETERS
    kind = _input_type(asked.prompt_name)
    check_characters([body.inputs.source_sentence], services.limits.characters, "inputs.source_sentence")
    texts = [*body.inputs.sentences, body.inputs.source_sentence]
    texts = await _kept(services, asked, texts, kind, "inputs.sentences")
    _, slices = await encoded_texts(
        services,
        services.encoding,
        texts,
        SENTENCES,
        deadline,
        TextOptions(input_type=kind, outputs=["dense"], truncate=asked.truncate is not False),
    )
    with services.telemetry.stage("encode"):
        parts = await whole(slices)
    vectors = np.concatenate([part.dense for part in parts if part.dense is not None])
    return await response_of(_similarities(vectors))


@routes.post("/tei/decode", response_model=list[str])
async def tei_decode(body: TeiDecodeRequest, services: Services) -> Response:
    """The texts of token ids in this encoder's vocabulary."""
    special = body.skip_special_tokens is False
    tokenizer = services.encoding.tokenizer
    return json_response(await services.pools.bodies.run(_decoded, body.ids, tokenizer, special=special))


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
            "max_batch_tokens": settings.batch_tokens or BATCH_TOKENS,
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
        TextOptions(input_type=kind, outputs=[output], truncate=body.truncate is not False),
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


async def _similarities(vectors: Float32) -> AsyncGenerator[bytes]:
    """Of the last and each of the others; all have length 1."""
    for piece in numbers_json(vectors[:-1] @ vectors[-1]):
        yield piece


def _decoded(ids: list[int] | list[list[int]], tokenizer: Tokenizer, *, special: bool) -> list[str]:
    rows = ids if ids and isinstance(ids[0], list) else [ids]
    return [tokenizer.text_of(row, special=special) for row in cast("list[list[int]]", rows)]


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
    first, last = tokenizer.frame(kind)
    return [*_special(tokenizer, first), *tokens, *_special(tokenizer, last)]


def _special(tokenizer: Tokenizer, token_ids: Any) -> list[dict[str, Any]]:
    return [
        {"id": id, "text": text, "special": True, "start": None, "stop": None}
        for id, text in zip(token_ids.tolist(), tokenizer.token_strings(token_ids), strict=True)
    ]
