"""Embedding for clients of other services: one handler, which an entry of `EMBED_APIS` tells what to read of
a request and what to write in its answer.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

from fastapi import Response

from tercet.models.encoder import EncoderInfo
from tercet.models.representations import InputType, Representations
from tercet.models.tokenizer import Tokenizer
from tercet.service.answers.pieces import response_of
from tercet.service.compat import cohere, jina, ollama, openai, tei
from tercet.service.compat.apis import EmbedApi
from tercet.service.compat.request import encoder_of, last_words, role_of
from tercet.service.compat.shapes import CompatibleRequest, around_vectors, item_of
from tercet.service.compat.vectors import SIGNS, forms_json, vector_json
from tercet.service.encoding.options import TextOptions
from tercet.service.exceptions import InvalidRequestError
from tercet.service.load.deadlines import Deadline
from tercet.service.routes.common import check_characters
from tercet.service.routes.texts import Fields, encoded_texts
from tercet.service.runtime import Runtime

# Vectors shrink by a quarter as base64, by a half as digits: that takes longer than sending it at a gigabit.
AS_IT_IS = {"Cache-Control": "no-transform"}


EMBED_APIS = (
    openai.OPENAI_EMBEDDINGS,
    cohere.COHERE_EMBED,
    jina.JINA_EMBEDDINGS,
    jina.JINA_MULTI_VECTOR,
    ollama.OLLAMA_EMBED,
    ollama.OLLAMA_EMBEDDINGS,
    tei.TEI_EMBED,
    tei.TEI_SPARSE,
    tei.TEI_ALL,
    tei.TEI_OPENAI_EMBEDDINGS,
    tei.TEI_SIMILARITY,
)


@dataclass(slots=True)
class EmbedParts:
    """What requests of all the APIs say; a field of each says it in its own way.

    texts: or token ids, of one text or of several; compared: a text more, the last; token_dimensions: which
    must be the encoder's; dimensions_if_fewer: as many, or all that there are.
    """

    texts: list[Any]
    compared: str | None = None
    model: str | None = None
    query: bool = False
    forms: str | list[str] | None = None
    dimensions: int | None = None
    dimensions_if_fewer: int | None = None
    token_dimensions: int | None = None
    max_length: int | None = None
    truncate: bool = True
    last_words: bool = False


async def embed(api: EmbedApi, body: CompatibleRequest, services: Runtime, deadline: Deadline) -> Response:
    """The vectors of a request's texts, in the shape of its API."""
    began = time.perf_counter_ns()
    read, names = api.request.read(body)
    parts = EmbedParts(**read)
    forms = _forms(api, parts.forms or "float", names)
    model, role = role_of(parts.model)
    encoding, adapter = await encoder_of(services, model)
    dimensions = _dimensions(api, parts, forms, names, encoding.info)
    texts = parts.texts
    kind: InputType = role or ("query" if parts.query else "document")
    if any(not isinstance(text, str) for text in texts):
        texts = await services.pools.bodies.run(_read_back, texts, encoding.tokenizer)
    if parts.compared is not None:
        check_characters([parts.compared], services.limits.characters, names["compared"])
        texts = [*texts, parts.compared]
    slices = _nothing()
    if texts:
        if parts.truncate and parts.last_words:
            texts = await last_words(services, encoding.tokenizer, texts, kind, names["texts"])
        _, slices = await encoded_texts(
            services,
            encoding,
            texts,
            Fields(names["texts"], *(names.get(part, part) for part in ("max_length", "dimensions"))),
            deadline,
            TextOptions(kind, [api.output], parts.max_length, parts.truncate, adapter),
            dimensions=dimensions,
        )
    values = {"id": str(uuid.uuid4()), "model": adapter or encoding.info.name, "texts": texts}
    pieces = _pieces(api, slices, forms, values, began)
    with services.telemetry.stage("encode") if texts else nullcontext():
        return await response_of(pieces, headers=None if api.compressed else AS_IT_IS)


routes = [api.routes(partial(embed, api)) for api in EMBED_APIS]


def _read_back(given: Sequence[Any], tokenizer: Tokenizer) -> list[str]:
    """Texts, of token ids too; those of one text are a list of numbers."""
    several = [given] if isinstance(given[0], int) else given
    return [text if isinstance(text, str) else tokenizer.text_of(text) for text in several]


def _forms(api: EmbedApi, forms: str | list[str], names: Mapping[str, str]) -> list[str]:
    if isinstance(forms, str):
        return [forms]
    if len(forms) > 1 and api.together is not forms_json:
        message = f"{names['forms']} has {len(forms)} forms; ask for one at a time"
        raise InvalidRequestError(message, names["forms"], "unsupported")
    return list(dict.fromkeys(forms))


def _dimensions(
    api: EmbedApi, parts: EmbedParts, forms: list[str], names: Mapping[str, str], info: EncoderInfo
) -> int | None:
    """Values that are kept of each vector; None for all."""
    if parts.token_dimensions not in (None, info.colbert_dimension):
        name = names["token_dimensions"]
        message = (
            f"{name} is {parts.token_dimensions}; token vectors of {info.name} have {info.colbert_dimension}"
        )
        raise InvalidRequestError(message, name)
    size = parts.dimensions or (info.dense_dimension if api.whole_bytes else 0)
    if SIGNS.intersection(forms) and size % 8:
        name = names["dimensions"]
        message = (
            f"{size} values make no whole bytes: take a multiple of 8"
            if api.whole_bytes
            else f"{name} is {size}; binary vectors take a multiple of 8"
        )
        raise InvalidRequestError(message, name)
    fewer = parts.dimensions_if_fewer or 0
    return fewer if 0 < fewer <= info.dense_dimension else parts.dimensions


async def _nothing() -> AsyncGenerator[Representations]:
    for part in tuple[Representations, ...]():
        yield part


async def _pieces(
    api: EmbedApi,
    slices: AsyncGenerator[Representations],
    forms: Sequence[str],
    values: Mapping[str, Any],
    began: int,
) -> AsyncGenerator[bytes]:
    """The answer's body, text by text where it has a list of them. began: in nanoseconds."""
    tokens = index = 0
    unknown = {**values, "tokens": 0, "billed": 0, "nanoseconds": 0}
    yield around_vectors(api.answer, unknown)[0]
    async with aclosing(slices):
        if api.together is not None:
            parts = [part async for part in slices]
            tokens = sum(int(part.tokens.sum()) for part in parts)
            for piece in api.together(parts, forms):
                yield piece
        else:
            item = item_of(api.answer)
            async for part in slices:
                tokens += int(part.tokens.sum())
                for row in range(len(part)):
                    before, after = around_vectors(item, {"index": index})
                    yield b"," * bool(index) + before
                    for piece in vector_json(part, row, api.output, *forms):
                        yield piece
                    yield after
                    index += 1
    took = time.perf_counter_ns() - began
    known = {**values, "tokens": tokens, "billed": tokens, "nanoseconds": took}
    yield around_vectors(api.answer, known)[1]
