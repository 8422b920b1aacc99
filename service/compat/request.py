"""The types of fields that services share, and the encoder and texts that a request means."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, Tag

from tercet.models.errors import AdapterNotFoundError
from tercet.models.representations import InputType
from tercet.models.tokenizer import Tokenizer
from tercet.service.encoding.service import EncodingService
from tercet.service.exceptions import InvalidRequestError
from tercet.service.routes.common import check_characters
from tercet.service.runtime import Runtime
from tercet.service.schemas.base import ADAPTER_PATTERN, counted, discriminated
from tercet.service.schemas.search import TokenId


def _flag(value: object) -> object:
    """Some clients send "true"."""
    return {"true": True, "false": False}.get(value, value) if isinstance(value, str) else value


def text_or_texts(value: object) -> str:
    """The tag of what a field has, for `discriminated`."""
    return "text" if isinstance(value, str) else "texts" if isinstance(value, list) else ""


def _text_or_object(value: object) -> str:
    return "text" if isinstance(value, str) else "object" if isinstance(value, dict) else ""


ROLES: Mapping[str, InputType] = {"query": "query", "passage": "document"}

Flag = Annotated[bool, BeforeValidator(_flag)]
TokenIds = Annotated[list[TokenId], Field(fail_fast=True)]
TextOrTexts = Annotated[
    Annotated[str, Tag("text")]
    | Annotated[list[str], Field(fail_fast=True), counted("texts", "texts"), Tag("texts")],
    *discriminated(text_or_texts, "a string or a list of strings"),
]
TextOrObject = Annotated[
    Annotated[str, Tag("text")] | Annotated[dict[str, Any], Tag("object")],
    *discriminated(_text_or_object, "a string or an object"),
]


def texts_of(given: str | Sequence[str | dict[str, Any]], field: str) -> list[str]:
    """The texts of a text, or of several, which may be objects with one. Raises InvalidRequestError."""
    texts: list[str] = []
    for index, entry in enumerate([given] if isinstance(given, str) else given):
        text = entry if isinstance(entry, str) else entry.get("text")
        if not isinstance(text, str):
            raise InvalidRequestError(
                f"{field}.{index} has no text; send a text, or an object with one under text",
                f"{field}.{index}",
            )
        texts.append(text)
    return texts


def role_of(model: str | None) -> tuple[str | None, InputType | None]:
    """A model's name without the role at its end, as in `multi-m3:query`, and what that says its texts are.

    Clients of OpenAI's API say which model a text is for, but not what it is.
    """
    name, _, role = (model or "").rpartition(":")
    return (name, ROLES[role]) if name and role in ROLES else (model, None)


async def encoder_of(services: Runtime, model: str | None) -> tuple[EncodingService, str | None]:
    """The encoder and the adapter that a model's name is the name of; the server's own without one for any
    other.

    Raises AdapterUnusableError or AdapterNotServedError, and what `EncoderShelf.named` raises.
    """
    own = services.encoding
    if model is None or model == own.info.name:
        return own, None
    if re.fullmatch(ADAPTER_PATTERN, model):
        with suppress(AdapterNotFoundError):
            await own.info_of(model)
            return own, model
    return await services.encoders.named(model) or own, None


async def last_words(
    services: Runtime, tokenizer: Tokenizer, texts: Sequence[str], kind: InputType, field: str
) -> list[str]:
    """The texts, of longer ones the last words that the encoder reads. field: the request's with them.

    Raises InvalidRequestError for one of too many characters.
    """
    check_characters(texts, services.limits.characters, field)
    return await services.pools.bodies.run(lambda: [tokenizer.tail(text, kind) for text in texts])
