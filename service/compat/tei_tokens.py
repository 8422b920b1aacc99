"""Tokens of texts and texts of tokens, as clients of Text Embeddings Inference ask for them: `/tei/tokenize`
and `/tei/decode`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Annotated, Any, cast

import orjson
from fastapi import Response
from pydantic import BaseModel, Field, Tag

from tercet.models.representations import InputType
from tercet.models.tokenizer import Tokenizer
from tercet.service.answers.pieces import response_of
from tercet.service.compat.apis import TEI
from tercet.service.compat.request import TextOrTexts, TokenIds
from tercet.service.compat.shapes import CompatibleRequest
from tercet.service.load.pools import Pool
from tercet.service.routes.common import Services, check_characters, json_response
from tercet.service.schemas.base import counted, discriminated

GROUP_CHARACTERS = 2**14  # of the texts whose tokens are made at once
TOKENS_AT_ONCE = 2**12  # written by one call, which holds the interpreter's lock

routes = TEI()


class TeiTokenizeRequest(CompatibleRequest, json_schema_extra={"examples": [{"inputs": "Tea is brewed."}]}):
    """Texts to split into tokens."""

    inputs: TextOrTexts
    add_special_tokens: bool | None = True
    prompt_name: str | None = Field(None, description="`query` is a query, anything else a document.")


def _ids_kind(value: object) -> str:
    if not isinstance(value, list):
        return ""
    return "several" if value and isinstance(value[0], list) else "ids"


class TeiDecodeRequest(CompatibleRequest, json_schema_extra={"examples": [{"ids": [[2045, 2003], [4248]]}]}):
    """Token ids to read back as text."""

    ids: Annotated[
        Annotated[TokenIds, Tag("ids")]
        | Annotated[list[TokenIds], Field(fail_fast=True), counted("texts", "texts"), Tag("several")],
        *discriminated(_ids_kind, "a list of token ids, or a list of such lists"),
    ]
    skip_special_tokens: bool | None = Field(True, description="false keeps them, such as [CLS].")


class TeiToken(BaseModel):
    """A token; start and stop are characters of its text, null for a special token."""

    id: int
    text: str
    special: bool
    start: int | None
    stop: int | None


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
    kind: InputType = "query" if body.prompt_name == "query" else "document"
    special = body.add_special_tokens is not False
    return await response_of(_all_tokens(services.pools.bodies, tokenizer, texts, kind, special=special))


def _decoded(ids: list[int] | list[list[int]], tokenizer: Tokenizer, *, special: bool) -> list[str]:
    rows = ids if ids and isinstance(ids[0], list) else [ids]
    return [tokenizer.text_of(row, special=special) for row in cast("list[list[int]]", rows)]


async def _all_tokens(
    pool: Pool, tokenizer: Tokenizer, texts: list[str], kind: InputType, *, special: bool
) -> AsyncGenerator[bytes]:
    """The answer's JSON. A token's takes many times the room of its text, so few are made at once."""
    separator, group, size = b"[", list[str](), 0
    for index, text in enumerate(texts):
        group.append(text)
        size += len(text)
        if size >= GROUP_CHARACTERS or index == len(texts) - 1:
            for piece in await pool.run(_tokens_json, tokenizer, group, kind, special=special):
                yield separator + piece
                separator = b""
            separator, group, size = b",", [], 0
    yield b"[]" if not texts else b"]"


def _tokens_json(tokenizer: Tokenizer, texts: list[str], kind: InputType, *, special: bool) -> list[bytes]:
    """The tokens of texts, a list of each, with commas between."""
    pieces = []
    for index, text in enumerate(texts):
        tokens = _tokens(tokenizer, text, kind, special=special)
        pieces.append(b",[" if index else b"[")
        for start in range(0, len(tokens), TOKENS_AT_ONCE):
            part = orjson.dumps(tokens[start : start + TOKENS_AT_ONCE])[1:-1]
            pieces.append(b"," + part if start else part)
        pieces.append(b"]")
    return pieces


def _tokens(tokenizer: Tokenizer, text: str, kind: InputType, *, special: bool) -> list[dict[str, Any]]:
    """The tokens of a text after the instruction of its kind, which start and stop count, too."""
    text = tokenizer.instruction(kind) + text
    spans = tokenizer.spans(text)
    token_spans = zip(spans.token_ids.tolist(), spans.starts.tolist(), spans.ends.tolist(), strict=True)
    tokens: list[dict[str, Any]] = [
        {"id": id, "text": text[start:stop], "special": False, "start": start, "stop": stop}
        for id, start, stop in token_spans
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
