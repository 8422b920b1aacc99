"""Dense vectors as JSON, in the forms and lists that OpenAI and others have for them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from functools import partial
from typing import Literal

import numpy as np
import orjson

from tercet.models.representations import Float32, Representations
from tercet.service.answers.dtypes import Dtype, typed
from tercet.service.answers.embeddings import base64_json, numbers_json

# Vectors shrink by a quarter as base64, by a half as digits: that takes longer than sending it at a gigabit.
AS_IT_IS = {"Cache-Control": "no-transform"}
VectorForm = Literal["float", "base64", "binary", "ubinary"]


def _float(vector: Float32) -> bytes:
    return b"".join(numbers_json(vector))


def _numbers(vector: Float32, dtype: Dtype) -> bytes:
    return b"".join(numbers_json(typed(vector[None], dtype).values[0]))


def _uint8(vector: Float32) -> bytes:
    moved = typed(vector[None], "int8").values[0].view(np.uint8) ^ np.uint8(128)
    return b"".join(numbers_json(moved))


WRITTEN: Mapping[str, Callable[[Float32], bytes]] = {
    "float": _float,
    "base64": base64_json,
    "int8": partial(_numbers, dtype="int8"),
    "uint8": _uint8,
    "ubinary": partial(_numbers, dtype="ubinary"),
    "binary": partial(_numbers, dtype="binary"),
}
"""`int8`, `binary` and `ubinary`: as `tercet.service.answers.dtypes` says, int8 without its scale, which
no cosine
needs; `uint8`: int8 and 128."""


async def vectors_json(
    slices: AsyncGenerator[Representations], model: str, form: Callable[[Float32], bytes]
) -> AsyncGenerator[bytes]:
    """The answer's body, some texts at a time. form: writes a vector."""
    yield b'{"object":"list","data":['
    index = tokens = 0
    async with aclosing(slices):
        async for part in slices:
            assert part.dense is not None  # noqa: S101 - asked for
            for vector in part.dense:
                comma = b"," if index else b""
                yield b'%b{"object":"embedding","index":%d,"embedding":%b}' % (comma, index, form(vector))
                index += 1
            tokens += int(part.tokens.sum())
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    yield b'],"model":' + orjson.dumps(model) + b',"usage":' + orjson.dumps(usage) + b"}"
