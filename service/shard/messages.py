"""Messages between a router and its shards: one safetensors body each, and behind it its CRC-32, since a
score that was damaged on its way looks like any other.

`values` uint8[·] is a JSON object; other arrays are named by what they are for. Byte strings are two arrays,
their bytes and, with `_offsets` behind the name, where each begins.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt
import orjson
from safetensors import SafetensorError
from safetensors.numpy import load, save

from tercet.index.documents.json_values import loads
from tercet.index.files.packed_bytes import PackedBytes, ascends_from_zero
from tercet.service.exceptions import InvalidRequestError, MalformedBodyError

COLLECTIONS = "/shard/collections"  # the path below which a shard tells of them
VALUES = "values"
CHECK_BYTES = 4  # of the checksum
Array = npt.NDArray[Any]
Arrays = dict[str, Array | PackedBytes | None]


@dataclass(frozen=True, slots=True)
class Message:
    """A message that was read. values: its object; arrays: the others."""

    values: Mapping[str, Any]
    arrays: Mapping[str, Array]

    @staticmethod
    def read(body: bytes) -> Message:
        """Raises ValueError where it is none."""
        content = body[:-CHECK_BYTES]
        if _check_of(content) != body[-CHECK_BYTES:]:
            raise ValueError(
                "it is no message of a shard, or was damaged on its way: its checksum is another"
            )
        try:
            arrays = load(content)
            values = loads(arrays.pop(VALUES).tobytes())
        except (SafetensorError, KeyError, orjson.JSONDecodeError, RecursionError) as error:
            raise ValueError(f"it is no message of a shard ({type(error).__name__}: {error})") from None
        if not isinstance(values, dict):
            raise ValueError("the values of a message are an object")
        return Message(values, arrays)

    def array(self, name: str, kind: npt.DTypeLike, *shape: int | None) -> Array:
        """The array of a name, of a type and a shape, in which None is any size. Raises ValueError."""
        found = self.arrays.get(name)
        if found is None:
            raise ValueError(f"the array {name} is missing")
        fits = found.ndim == len(shape) and all(
            wanted in (None, size) for size, wanted in zip(found.shape, shape, strict=True)
        )
        if found.dtype != np.dtype(kind) or not fits:
            raise ValueError(f"the array {name} is {found.dtype} of shape {list(found.shape)}")
        return found

    def array_or_none(self, name: str, kind: npt.DTypeLike, *shape: int | None) -> Array | None:
        """The same, None where it is not there."""
        return self.array(name, kind, *shape) if name in self.arrays else None

    def strings(self, name: str, count: int | None = None) -> PackedBytes:
        """Byte strings, so many if that is given. Raises ValueError."""
        data = self.array(name, np.uint8, None)
        offsets = self.array(f"{name}_offsets", np.int64, None if count is None else count + 1)
        if not ascends_from_zero(offsets) or offsets[-1] != len(data):
            raise ValueError(f"the offsets of {name} do not fit its bytes")
        return PackedBytes(data, offsets)

    def numbers(self, name: str, below: int, count: int | None = None) -> npt.NDArray[np.int64]:
        """Whole numbers from 0 and below a limit. Raises ValueError."""
        found = self.array(name, np.int64, count)
        if len(found) and not (found.min() >= 0 and found.max() < below):
            raise ValueError(f"a number of {name} is not from 0 to {below - 1}")
        return found


def message(values: Mapping[str, Any], arrays: Mapping[str, Array | PackedBytes | None]) -> bytes:
    """The body of a message; what is None is not in it."""
    packed: dict[str, Array] = {VALUES: np.frombuffer(orjson.dumps(values), np.uint8)}
    for name, array in arrays.items():
        if isinstance(array, PackedBytes):
            packed[name], packed[f"{name}_offsets"] = _from_zero(array)
        elif array is not None:
            packed[name] = np.ascontiguousarray(array)
    return checked(save(packed))


def checked(content: bytes) -> bytes:
    """Content with its checksum behind it."""
    return content + _check_of(content)


def _check_of(content: bytes) -> bytes:
    return crc32(content).to_bytes(CHECK_BYTES, "little")


def _from_zero(strings: PackedBytes) -> tuple[Array, Array]:
    first, last = int(strings.offsets[0]), int(strings.offsets[-1])
    return np.ascontiguousarray(strings.data[first:last]), strings.offsets - first


@contextmanager
def asked() -> Iterator[None]:
    """Within it, whatever a request's message lacks is an error of the request: InvalidRequestError."""
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, OverflowError) as error:
        what = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise InvalidRequestError(
            f"a message to a shard: {what}; routers of this version send another"
        ) from None


def request_of(body: bytes) -> Message:
    """The message of a request. Raises MalformedBodyError."""
    try:
        return Message.read(body)
    except ValueError as error:
        raise MalformedBodyError(f"the body: {error}", "invalid_safetensors") from None
