"""Messages between a router and its shards: one safetensors body each, and behind it its CRC-32, since a
score that was damaged on its way looks like any other.

`values` uint8[·] is a JSON object; other arrays are named by what they are for: see `codec.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt
import orjson
from safetensors.numpy import load, save

from tercet.index.documents.json_values import loads
from tercet.index.wording import reason_of
from tercet.models.files import UNREADABLE_ARRAYS

COLLECTIONS = "/shard/collections"  # the path below which a shard tells of them
VALUES = "values"
CHECK_BYTES = 4  # of the checksum
Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Message:
    """What a message holds: JSON values and arrays, by name. sizes: letters of shapes that are known."""

    values: dict[str, Any]
    arrays: dict[str, Array]
    sizes: Mapping[str, int] = field(default_factory=dict)


def pack(message: Message) -> bytes:
    """The body of a message."""
    values = np.frombuffer(orjson.dumps(message.values, option=orjson.OPT_SERIALIZE_NUMPY), np.uint8)
    return checked(save({VALUES: values, **message.arrays}))


def unpack(body: bytes, sizes: Mapping[str, int]) -> Message:
    """The message of a body. Raises ValueError where it is none."""
    content = body[:-CHECK_BYTES]
    if _check_of(content) != body[-CHECK_BYTES:]:
        raise ValueError("it is no message of a shard, or was damaged on its way: its checksum is another")
    try:
        arrays = load(content)
        values = loads(arrays.pop(VALUES).tobytes())
    except (*UNREADABLE_ARRAYS, RecursionError) as error:
        raise ValueError(f"it is no message of a shard ({reason_of(error)})") from None
    if not isinstance(values, dict):
        raise ValueError("the values of a message are an object")
    return Message(values, arrays, sizes)


def checked(content: bytes) -> bytes:
    """Content with its checksum behind it."""
    return content + _check_of(content)


def _check_of(content: bytes) -> bytes:
    return crc32(content).to_bytes(CHECK_BYTES, "little")
