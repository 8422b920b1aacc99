"""Records as messages, and messages as records: the types of a dataclass's fields say how each travels.

- `str`, `int`, `float`, `bool`, literals, sequences of strings and `Any` are JSON values. Whole numbers are
  not negative, and numbers are finite.
- Arrays travel as they are, byte strings as `PackedBytes`, and `bytes` as an array. `Shape` says what sizes
  an array has; the reader may know letters of it beforehand.
- A record in a record travels under the name of its field. Of records in a sequence each field travels once,
  the rows of all of them one after the other.
- What is None is not in a message.

`CONVERTED` has types that travel as another. The bytes are those of `messages.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cache, reduce
from itertools import accumulate
from operator import or_
from types import NoneType
from typing import Annotated, Any, Literal, Protocol, TypeVar, cast, get_args, get_origin, get_type_hints

import numpy as np

from tercet.index.files.packed_bytes import PackedBytes, ascends_from_zero
from tercet.service.exceptions import InvalidRequestError, MalformedBodyError
from tercet.service.shard.conversions import CONVERTED
from tercet.service.shard.messages import Array, Message, pack, unpack

MOST = 2**53  # of whole numbers: as many as JSON keeps exact
THERE = "?"  # behind the name of a field: which records of a sequence have it
ROWS = "#"  # behind the name of an array: how many rows of it each record of a sequence has

Record = TypeVar("Record")
Sizes = dict[str, Any]
"""By letter: a size, or of records in a sequence a list of the size of each."""


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
    """How values of one type travel, alone or as a column: those of a field of the records of a sequence."""

    def put(self, message: Message, name: str, value: Any) -> None:
        """Writes a value."""

    def get(self, message: Message, name: str, sizes: Sizes) -> Any:
        """Reads a value. sizes: letters that are known, to which it adds. Raises ValueError."""

    def put_all(self, message: Message, name: str, values: Sequence[Any]) -> None:
        """Writes a column."""

    def get_all(self, message: Message, name: str, count: int, sizes: Sizes) -> Sequence[Any]:
        """Reads a column of so many. Raises ValueError."""


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

    def put_all(self, message: Message, name: str, values: Sequence[Any]) -> None:
        message.values[name] = values

    def get_all(self, message: Message, name: str, count: int, sizes: Sizes) -> Sequence[Any]:
        try:
            return list(map(self.read, _list(message, name, count)))
        except (TypeError, OverflowError) as error:
            raise ValueError(f"{name}: {error}") from None


@dataclass(frozen=True, slots=True)
class _Rows:
    """An array of a type and a shape, in which None is any size."""

    dtype: np.dtype[Any]
    shape: tuple[str | int | None, ...]

    def put(self, message: Message, name: str, value: Any) -> None:
        message.arrays[name] = np.ascontiguousarray(value, self.dtype)

    def get(self, message: Message, name: str, sizes: Sizes) -> Array:
        array = self._array(message, name)
        for wanted, size in zip(self.shape, array.shape, strict=True):
            _fit(sizes, wanted, size, name)
        return array

    def put_all(self, message: Message, name: str, values: Sequence[Any]) -> None:
        empty = np.empty((0,) * len(self.shape), self.dtype)
        message.arrays[name] = np.concatenate(values, dtype=self.dtype) if values else empty
        message.arrays[name + ROWS] = np.array(list(map(len, values)), np.int64)

    def get_all(self, message: Message, name: str, count: int, sizes: Sizes) -> Sequence[Any]:
        array, rows = self._array(message, name), _COUNTS.get(message, name + ROWS, {}).tolist()
        if len(rows) != count or min(rows, default=0) < 0 or sum(rows) != len(array):
            raise ValueError(f"the rows of {name} are not those of {count} records")
        for wanted, size in zip(self.shape, (rows, *array.shape[1:]), strict=True) if count else ():
            _fit(sizes, wanted, size, name)
        return [array[stop - length : stop] for length, stop in zip(rows, accumulate(rows), strict=True)]

    def _array(self, message: Message, name: str) -> Array:
        array: Array = _there(message.arrays, name)
        if array.dtype != self.dtype or array.ndim != len(self.shape):
            raise ValueError(f"{name} is {array.dtype} of shape {list(array.shape)}")
        return array


_BYTES = _Rows(np.dtype(np.uint8), (None,))
_COUNTS = _Rows(np.dtype(np.int64), (None,))


@dataclass(frozen=True, slots=True)
class _Strings:
    """Byte strings, so many. They are two arrays: their bytes, and where each begins."""

    count: str | int | None

    def put(self, message: Message, name: str, value: PackedBytes) -> None:
        message.arrays[name], message.arrays[f"{name}_offsets"] = _from_zero(value)

    def get(self, message: Message, name: str, sizes: Sizes) -> PackedBytes:
        strings = _strings(
            name, _BYTES.get(message, name, sizes), _COUNTS.get(message, f"{name}_offsets", {})
        )
        _fit(sizes, self.count, len(strings), name)
        return strings

    def put_all(self, message: Message, name: str, values: Sequence[PackedBytes]) -> None:
        packed = [_from_zero(value) for value in values]
        _BYTES.put_all(message, name, [data for data, _ in packed])
        _COUNTS.put_all(message, f"{name}_offsets", [offsets for _, offsets in packed])

    def get_all(self, message: Message, name: str, count: int, sizes: Sizes) -> Sequence[PackedBytes]:
        data = _BYTES.get_all(message, name, count, {})
        offsets = _COUNTS.get_all(message, f"{name}_offsets", count, {})
        strings = [_strings(name, *each) for each in zip(data, offsets, strict=True)]
        _fit(sizes, self.count, list(map(len, strings)), name)
        return strings


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

    def put_all(self, message: Message, name: str, values: Sequence[Any]) -> None:
        self.form.put_all(message, name, list(map(self.of, values)))

    def get_all(self, message: Message, name: str, count: int, sizes: Sizes) -> Sequence[Any]:
        return list(map(self.read, self.form.get_all(message, name, count, sizes)))


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

    def put_all(self, message: Message, name: str, values: Sequence[Any]) -> None:
        message.values[name + THERE] = [value is not None for value in values]
        self.form.put_all(message, name, [value for value in values if value is not None])

    def get_all(self, message: Message, name: str, count: int, sizes: Sizes) -> Sequence[Any]:
        there = _list(message, name + THERE, count)
        places = [place for place, each in enumerate(there) if each]
        known = {
            letter: size if isinstance(size, int) else [size[place] for place in places]
            for letter, size in sizes.items()
        }
        values: list[Any] = [None] * count
        for place, value in zip(places, self.form.get_all(message, name, len(places), known), strict=True):
            values[place] = value
        return values


@dataclass(frozen=True, slots=True)
class _Sequence:
    """Records of one kind, none of which has such a sequence itself."""

    form: Form
    count: str | int | None

    def put(self, message: Message, name: str, value: Sequence[Any]) -> None:
        message.values[name + ROWS] = len(value)
        self.form.put_all(message, name, value)

    def get(self, message: Message, name: str, sizes: Sizes) -> Any:
        count = _whole(_there(message.values, name + ROWS))
        _fit(sizes, self.count, count, name)
        return tuple(self.form.get_all(message, name, count, sizes))

    def put_all(self, message: Message, name: str, values: Sequence[Any]) -> None:
        raise TypeError(f"{name} is a sequence in a sequence")

    def get_all(self, message: Message, name: str, count: int, sizes: Sizes) -> Sequence[Any]:
        raise TypeError(f"{name} is a sequence in a sequence")


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

    def put_all(self, message: Message, name: str, values: Sequence[Any]) -> None:
        for field, form in self.forms:
            form.put_all(message, f"{name}.{field}", [getattr(value, field) for value in values])

    def get_all(self, message: Message, name: str, count: int, sizes: Sizes) -> Sequence[Any]:
        known = dict(message.sizes)
        columns = [form.get_all(message, f"{name}.{field}", count, known) for field, form in self.forms]
        return [self.kind(*values) for values in zip(*columns, strict=True)]


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


def _there(found: Mapping[str, Any], name: str) -> Any:
    if name not in found:
        raise ValueError(f"{name} is missing")
    return found[name]


def _list(message: Message, name: str, count: int) -> list[Any]:
    found = _there(message.values, name)
    if not isinstance(found, list) or len(found) != count:
        raise ValueError(f"{name} is no list of {count}")
    return found


def _fit(sizes: Sizes, wanted: str | int | None, size: Any, name: str) -> None:
    """Raises ValueError where a size, or that of each record in a sequence, is not the wanted one."""
    if wanted is None:
        return
    known = sizes.setdefault(wanted, size) if isinstance(wanted, str) else wanted
    if known != size and not (isinstance(size, list) and all(each == known for each in size)):
        raise ValueError(f"{name} does not have the size {wanted} that it is to have")


def _from_zero(strings: PackedBytes) -> tuple[Array, Array]:
    first, last = int(strings.offsets[0]), int(strings.offsets[-1])
    return np.ascontiguousarray(strings.data[first:last]), strings.offsets - first


def _strings(name: str, data: Array, offsets: Array) -> PackedBytes:
    if not ascends_from_zero(offsets) or offsets[-1] != len(data):
        raise ValueError(f"the offsets of {name} do not fit its bytes")
    return PackedBytes(data, offsets)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.40} is no text")
    return value


def _texts(value: Any, *, optional: bool) -> tuple[str | None, ...]:
    if not isinstance(value, list) or not all(
        isinstance(each, str) or (optional and each is None) for each in value
    ):
        raise TypeError("a list of texts is wanted")
    return tuple(value)


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{value!r:.40} is neither true nor false")
    return value


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < MOST:
        raise ValueError(f"{value!r:.40} is no count")
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{value!r:.40} is no number")
    return float(value)


def _one_of(values: Sequence[Any], value: Any) -> Any:
    if value not in values:
        raise ValueError(f"{value!r:.40} is none of {', '.join(map(str, values))}")
    return value


PLAIN: Mapping[Any, Callable[[Any], Any]] = {
    str: _text,
    bool: _truth,
    int: _whole,
    float: _number,
    Any: lambda value: value,
}
