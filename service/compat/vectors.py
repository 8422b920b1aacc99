"""Dense vectors as JSON, in the forms and lists that OpenAI and others have for them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import Literal

import numpy as np
import orjson

from models.representations import Float32, Representations
from service.answers.embeddings import base64_json, numbers_json

# Vectors shrink by a quarter as base64, by a half as digits: that takes longer than sending it at a gigabit.
AS_IT_IS = {"Cache-Control": "no-transform"}
VectorForm = Literal["float", "base64", "binary", "ubinary"]


def _float(vector: Float32) -> bytes:
    return b"".join(numbers_json(vector))


def _ubinary(vector: Float32) -> bytes:
    return orjson.dumps(np.packbits(vector > 0), option=orjson.OPT_SERIALIZE_NUMPY)


def _binary(vector: Float32) -> bytes:
    signed = (np.packbits(vector > 0).astype(np.int16) - 128).astype(np.int8)
    return orjson.dumps(signed, option=orjson.OPT_SERIALIZE_NUMPY)


WRITTEN: Mapping[str, Callable[[Float32], bytes]] = {
    "float": _float,
    "base64": base64_json,
    "ubinary": _ubinary,
    "binary": _binary,
}
"""`binary` and `ubinary`: the signs of the values, eight in a byte, as int8 less 128 and as uint8."""


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
