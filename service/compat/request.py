"""What requests in the shapes of other services have in common."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from typing import Annotated

import numpy as np
from pydantic import BeforeValidator, ConfigDict, Field

from tercet.models.errors import AdapterNotFoundError
from tercet.models.representations import Representations
from tercet.service.encoding.service import EncodingService
from tercet.service.runtime import Runtime
from tercet.service.schemas.base import ADAPTER_PATTERN, WHOLE, Body

ModelName = Annotated[
    str | None,
    Field(
        description="An encoder, adapter or router that `/v1/models` lists. Any other name means the "
        "server's own encoder, since clients must name some model.",
        max_length=500,
    ),
]


def _flag(value: object) -> object:
    """Some clients send "true"."""
    return {"true": True, "false": False}.get(value, value) if isinstance(value, str) else value


def text_or_texts(value: object) -> str:
    """The tag of what a field has, for `told_apart`."""
    return "text" if isinstance(value, str) else "texts" if isinstance(value, list) else ""


Flag = Annotated[bool, BeforeValidator(_flag)]
Dimensions = Annotated[
    Annotated[int, Field(ge=1), WHOLE] | None,
    Field(description="Keep this many values of each vector, normalized again."),
]


class CompatibleRequest(Body):
    """A request body of another service: other fields are passed over.

    Those services' clients send fields that mean nothing here, and more with each version.
    """

    model_config = ConfigDict(extra="ignore")


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


async def whole(slices: AsyncGenerator[Representations]) -> list[Representations]:
    """All slices, for answers that have to be in memory at once."""
    async with aclosing(slices):
        return [part async for part in slices]


def token_count(parts: list[Representations]) -> int:
    """Tokens of all slices."""
    return int(sum(np.sum(part.tokens) for part in parts))
