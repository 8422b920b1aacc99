"""Records as messages, and messages as records: the types of a dataclass's fields say how each travels.

- `str`, `int`, `float`, `bool`, literals, sequences of strings and `Any` are JSON values. Whole numbers are
  not negative, and numbers are finite.
- Arrays travel as they are, byte strings as `PackedBytes`, and `bytes` as an array. `Shape` says what sizes
  an array has; the reader may know letters of it beforehand.
- A record in a record travels under the name of its field; records in a sequence by their numbers, too.
- What is None is not in a message.

`CONVERTED` has types that travel as another. The bytes are those of `messages.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cache, reduce
from operator import or_
from types import NoneType
from typing import Annotated, Any, Literal, Protocol, TypeVar, cast, get_args, get_origin, get_type_hints

import numpy as np

from tercet.index.files.packed_bytes import PackedBytes, ascends_from_zero
from tercet.index.wording import shown
from tercet.service.exceptions import InvalidRequestError, MalformedBodyError
from tercet.service.shard.conversions import CONVERTED
from tercet.service.shard.messages import Array, Message, pack, unpack

MOST = 2**53  # of whole numbers: as many as JSON keeps exact
MOST_RECORDS = 2**16  # in a sequence
COUNT = "#"  # behind the name of a sequence: how many records it has

Record = TypeVar("Record")
Sizes = dict[str, int]
"""By letter."""


def encode(record: Any) -> bytes:
    """A record as a message."""
    message = Message({}, {})
    _form_of(cast("Hashable", type(record))).put(message, "", record)
    return pack(message)


def decode(kind: type[Record], body: bytes, **sizes: int) -> Record:
    """The record of a message. sizes: letters of shapes that are known. Raises ValueError for another one."""
    return _decoded(kind, unpack(body, sizes))


def decode_request(kind: type[Record], body: bytes) -> Record:
    """The record of a request. Raises MalformedBodyError for what is no message, and InvalidRequestError."""
    try:
        message = unpack(body, {})
    except ValueError as error:
        raise MalformedBodyError(f"the body: {error}", "invalid_safetensors") from None
    try:
        return _decoded(kind, message)
    except ValueError as error:
        raise InvalidRequestError(
            f"a message to a shard: {error}; routers of this version send another"
        ) from None


def _decoded(kind: type[Record], message: Message) -> Record:
    record: Record = _form_of(cast("Hashable", kind)).get(message, "", {})
    return record


class Form(Protocol):
    """How values of one type travel."""

    def put(self, message: Message, name: str, value: Any) -> None:
        """Writes a value."""

    def get(self, message: Message, name: str, sizes: Sizes) -> Any:
        """Reads a value. sizes: letters that are known, to which it adds. Raises ValueError."""


@dataclass(frozen=True, slots=True)
class _Json:
    """A JSON value. read: what it stands for; raises ValueError, TypeError or OverflowError for another."""

    read: Callable[[Any], Any]

    def put(self, message: Message, name: str, value: Any) -> None:
        message.values[name] = value

    def get(self, message: Message, name: str, sizes: Sizes) -> Any:
        try:
            return self.read(message.values[name])
        except KeyError:
            raise ValueError(f"{name} is missing") from None
        except (ValueError, TypeError, OverflowError) as error:
            raise ValueError(f"{name}: {error}") from None


@dataclass(frozen=True, slots=True)
class _Rows:
    """An array of a type and a shape, in which None is any size."""

    dtype: np.dtype[Any]
    shape: tuple[str | int | None, ...]

    def put(self, message: Message, name: str, value: Any) -> None:
        message.arrays[name] = np.ascontiguousarray(value, self.dtype)

    def get(self, message: Message, name: str, sizes: Sizes) -> Array:
        array: Array = _there(message.arrays, name)
        if array.dtype != self.dtype or array.ndim != len(self.shape):
            raise ValueError(f"{name} is {array.dtype} of shape {list(array.shape)}")
        for wanted, size in zip(self.shape, array.shape, strict=True):
            _fit(sizes, wanted, size, name)
        return array


_BYTES = _Rows(np.dtype(np.uint8), (None,))
_OFFSETS = _Rows(np.dtype(np.int64), (None,))


@dataclass(frozen=True, slots=True)
class _Strings:
    """Byte strings, so many. They are two arrays: their bytes, and where each begins."""

    count: str | int | None

    def put(self, message: Message, name: str, value: PackedBytes) -> None:
        first, last = int(value.offsets[0]), int(value.offsets[-1])
        message.arrays[name] = np.ascontiguousarray(value.data[first:last])
        message.arrays[f"{name}_offsets"] = value.offsets - first

    def get(self, message: Message, name: str, sizes: Sizes) -> PackedBytes:
        data, offsets = _BYTES.get(message, name, {}), _OFFSETS.get(message, f"{name}_offsets", {})
        if not ascends_from_zero(offsets) or offsets[-1] != len(data):
            raise ValueError(f"the offsets of {name} do not fit its bytes")
        _fit(sizes, self.count, len(offsets) - 1, name)
        return PackedBytes(data, offsets)


@dataclass(frozen=True, slots=True)
class _Converted:
    """What travels in another form: of makes the other, read makes it again or raises ValueError."""

    form: Form
    of: Callable[[Any], Any]
    read: Callable[[Any], Any]

    def put(self, message: Message, name: str, value: Any) -> None:
        self.form.put(message, name, self.of(value))

    def get(self, message: Message, name: str, sizes: Sizes) -> Any:
        return self.read(self.form.get(message, name, sizes))


@dataclass(frozen=True, slots=True)
class _Optional:
    """What may be None."""

    form: Form

    def put(self, message: Message, name: str, value: Any) -> None:
        if value is not None:
            self.form.put(message, name, value)
            if name not in message.arrays:
                message.values.setdefault(name, True)

    def get(self, message: Message, name: str, sizes: Sizes) -> Any:
        is_there = message.values.get(name) is not None or name in message.arrays
        return self.form.get(message, name, sizes) if is_there else None


@dataclass(frozen=True, slots=True)
class _Sequence:
    """So many records of one kind."""

    form: Form
    count: str | int | None

    def put(self, message: Message, name: str, value: Sequence[Any]) -> None:
        message.values[name + COUNT] = len(value)
        for number, each in enumerate(value):
            self.form.put(message, f"{name}.{number}", each)

    def get(self, message: Message, name: str, sizes: Sizes) -> Any:
        count = _whole(_there(message.values, name + COUNT))
        _fit(sizes, self.count, count, name)
        if count > MOST_RECORDS:
            raise ValueError(f"{name} has more than {MOST_RECORDS} records")
        return tuple(self.form.get(message, f"{name}.{number}", sizes) for number in range(count))


@dataclass(frozen=True, slots=True)
class _Fields:
    """A record. forms: of its fields, in their order; letters of theirs mean nothing outside of it."""

    kind: Callable[..., Any]
    forms: Sequence[tuple[str, Form]]

    def put(self, message: Message, name: str, value: Any) -> None:
        start = name and f"{name}."
        for field, form in self.forms:
            form.put(message, start + field, getattr(value, field))

    def get(self, message: Message, name: str, sizes: Sizes) -> Any:
        known, start = dict(message.sizes), name and f"{name}."
        return self.kind(*[form.get(message, start + field, known) for field, form in self.forms])


@cache
def _form_of(kind: Hashable) -> Form:
    """How values of a type travel. Raises TypeError for a type that does not."""
    shape: tuple[str | int | None, ...] = (None,)
    if get_origin(kind) is Annotated:
        kind, mark = get_args(kind)
        shape = mark.sizes
    if kind in CONVERTED:
        other, of, read = CONVERTED[kind]
        return _Converted(_form_of(other), of, read)
    if kind in PLAIN:
        return _Json(PLAIN[kind])
    if kind is PackedBytes:
        return _Strings(shape[0])
    if is_dataclass(kind):
        hints = get_type_hints(kind, include_extras=True)
        forms = [(field.name, _form_of(hints[field.name])) for field in fields(kind)]
        return _Fields(cast("Callable[..., Any]", kind), forms)
    origin, arguments = get_origin(kind), get_args(kind)
    if NoneType in arguments:
        return _Optional(_form_of(reduce(or_, [each for each in arguments if each is not NoneType])))
    if origin is Literal:
        return _Json(lambda value: _one_of(arguments, value))
    if origin is np.ndarray:
        (dtype,) = get_args(arguments[1])
        return _Rows(np.dtype(dtype), shape)
    if origin in (tuple, Sequence):
        inner = arguments[0]
        if inner in (str, str | None):
            return _Json(lambda value: _texts(value, optional=inner is not str))
        return _Sequence(_form_of(inner), shape[0])
    raise TypeError(f"{kind} has no way to travel")


def _there(arrays: Mapping[str, Any], name: str) -> Any:
    if name not in arrays:
        raise ValueError(f"{name} is missing")
    return arrays[name]


def _fit(sizes: Sizes, wanted: str | int | None, size: int, name: str) -> None:
    """Raises ValueError where a size is not the wanted one."""
    if wanted is None:
        return
    known = sizes.setdefault(wanted, size) if isinstance(wanted, str) else wanted
    if known != size:
        raise ValueError(f"{name} has the size {size}, and {wanted} is {known}")


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{shown(value, 40)} is no text")
    return value


def _texts(value: Any, *, optional: bool) -> tuple[str | None, ...]:
    if not isinstance(value, list) or not all(
        isinstance(each, str) or (optional and each is None) for each in value
    ):
        raise TypeError("a list of texts is wanted")
    return tuple(value)


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{shown(value, 40)} is neither true nor false")
    return value


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < MOST:
        raise ValueError(f"{shown(value, 40)} is no count")
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{shown(value, 40)} is no number")
    return float(value)


def _one_of(values: Sequence[Any], value: Any) -> Any:
    if value not in values:
        raise ValueError(f"{shown(value, 40)} is none of {', '.join(map(str, values))}")
    return value


PLAIN: Mapping[Any, Callable[[Any], Any]] = {
    str: _text,
    bool: _truth,
    int: _whole,
    float: _number,
    Any: lambda value: value,
}
