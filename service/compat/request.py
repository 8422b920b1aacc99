"""What requests in the shapes of other services have in common."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated

import numpy as np
from pydantic import ConfigDict, Field

from models.errors import AdapterNotFoundError
from models.representations import Representations
from service.encoding.service import EncodingService
from service.schemas.base import ADAPTER_PATTERN, WHOLE, Body

ModelName = Annotated[
    str | None,
    Field(
        description="The name of an adapter or router of this server. Any other name means its encoder, "
        "since clients must name some model.",
        max_length=500,
    ),
]
Dimensions = Annotated[int, Field(ge=1), WHOLE]


class CompatibleRequest(Body):
    """A request body of another service: other fields are passed over.

    Those services' clients send fields that mean nothing here, and more with each version.
    """

    model_config = ConfigDict(extra="ignore")


async def adapter_of(encoding: EncodingService, model: str | None) -> str | None:
    """The adapter that a model's name is the name of; None for the encoder as it is.

    Raises AdapterUnusableError or AdapterNotServedError.
    """
    if model is None or model == encoding.info.name or not re.fullmatch(ADAPTER_PATTERN, model):
        return None
    try:
        await encoding.info_of(model)
    except AdapterNotFoundError:
        return None
    return model


async def whole(slices: AsyncGenerator[Representations]) -> list[Representations]:
    """All slices, for answers that have to be in memory at once."""
    async with aclosing(slices):
        return [part async for part in slices]


def token_count(parts: list[Representations]) -> int:
    """Tokens of all slices."""
    return int(sum(np.sum(part.tokens) for part in parts))
