"""Requests and answers of other services as data: the name of each field, and what it is here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import orjson
from pydantic import BaseModel, ConfigDict, Field, create_model

from tercet.service.exceptions import InvalidRequestError
from tercet.service.schemas.base import Body

REQUIRED: Any = ...


class CompatibleRequest(Body):
    """A request body of another service: other fields are passed over.

    Those services' clients send fields that mean nothing here, and more with each version.
    """

    model_config = ConfigDict(extra="ignore")


def _as_it_is(value: Any, _name: str) -> Any:
    return value


@dataclass(frozen=True, slots=True)
class Take:
    """A field of a request.

    to: the part of our own request that it gives, None without effect; type: as Pydantic takes it, or an
    object's fields; about: its description; read: makes the part of the field's value and name, or refuses.
    """

    to: str | None
    type: Any
    about: str | None = None
    default: Any = None
    read: Callable[[Any, str], Any] = _as_it_is

    @property
    def described(self) -> tuple[Any, Any]:
        """The field's type and default, as Pydantic takes them."""
        kind = self.type.model if isinstance(self.type, Request) else self.type
        field = Field(self.default, description=self.about) if self.about else self.default
        return kind if self.default is REQUIRED else kind | None, field


@dataclass(frozen=True, slots=True)
class Request:
    """The fields of a body, or of an object in one. model: by which they are checked and described."""

    model: type[CompatibleRequest]
    fields: Mapping[str, Take]

    def read(self, body: CompatibleRequest) -> tuple[dict[str, Any], dict[str, str]]:
        """The parts of our own request, and the name of the field that each comes from.

        Raises InvalidRequestError for what is not offered, and unless just one of two fields for a part says
        something.
        """
        parts: dict[str, Any] = {}
        names: dict[str, str] = {}
        for part, name, value in self._parts(body, ""):
            if part in parts and bool(parts[part]) == bool(value):
                raise InvalidRequestError(
                    f"send either {names[part]} or {name}, with at least one text", names[part]
                )
            names.setdefault(part, name)
            parts[part] = parts.get(part) or value
        return parts, names

    def _parts(self, body: object, above: str) -> Iterator[tuple[str, str, Any]]:
        for name, take in self.fields.items():
            value = getattr(body, name, None)
            if isinstance(take.type, Request):
                yield from take.type._parts(value, f"{above}{name}.")
                continue
            part = take.read(value, above + name)
            if take.to is not None:
                yield take.to, above + name, part


def request(name: str, about: str, example: dict[str, Any] | None, /, **fields: Take) -> Request:
    """A request, or an object in one. name, about and example are for its description."""
    config = {} if example is None else {"json_schema_extra": {"examples": [example]}}
    described: dict[str, Any] = {field: take.described for field, take in fields.items()}
    return Request(
        create_model(name, __base__=CompatibleRequest, __doc__=about, __cls_kwargs__=config, **described),
        fields,
    )


@dataclass(frozen=True, slots=True)
class Slot:
    """What fills a field of an answer. type: as it is described."""

    name: str
    type: Any


@dataclass(frozen=True, slots=True)
class Fixed:
    """What is the same in every answer. type: as it is described."""

    type: Any
    value: Any


@dataclass(frozen=True, slots=True)
class IfKnown:
    """A field that is left out where its slot has no value."""

    slot: Slot


@dataclass(frozen=True, slots=True)
class Answer:
    """An object of an answer. model: by which it is described."""

    model: type[BaseModel]
    fields: Mapping[str, Shape]


Shape = Slot | Fixed | IfKnown | Answer | list[Any] | dict[str, Any] | str
"""What is written in an answer: `[item]` is an item for each text; a text is itself; a dict has shapes, which
its description does not tell.
"""


def answer(name: str, about: str, /, **fields: Shape) -> Answer:
    """An object of an answer. name, about: for its description."""
    described: dict[str, Any] = {
        field: (type_of(shape.slot) | None, None) if isinstance(shape, IfKnown) else (type_of(shape), ...)
        for field, shape in fields.items()
    }
    return Answer(create_model(name, __doc__=about, **described), fields)


def type_of(shape: Shape) -> Any:
    """The type by which a shape is described."""
    match shape:
        case Slot() | Fixed():
            return shape.type
        case Answer():
            return shape.model
        case list():
            return list[type_of(shape[0])]  # type: ignore[misc]  # a type that is known only now
        case str():
            return Literal[shape]
    return dict[str, Any]


Values = Mapping[str, Any]


def filled(shape: Shape, values: Values) -> Any:
    """What is written for a shape. values: of its slots by their names; `rows` are the items of a list."""
    match shape:
        case Slot():
            return values[shape.name]
        case Fixed():
            return shape.value
        case IfKnown():
            return values[shape.slot.name]
        case Answer():
            return filled({**shape.fields}, values)
        case list():
            return values["rows"]
        case dict():
            known = (entry for entry in shape.items() if not _is_unknown(entry[1], values))
            return {field: filled(entry, values) for field, entry in known}
    return shape


def _is_unknown(shape: Shape, values: Values) -> bool:
    return isinstance(shape, IfKnown) and shape.slot.name not in values


# No JSON has this byte. It marks where vectors go, so that the rest can be written around them.
MARK = b"\xff"


def around_vectors(shape: Shape, values: Values) -> tuple[bytes, bytes]:
    """The JSON of a shape before and after its vectors."""
    mark = orjson.Fragment(MARK)
    before, _, after = orjson.dumps(filled(shape, {**values, "vectors": mark, "rows": [mark]})).partition(
        MARK
    )
    return before, after


def item_of(shape: Shape) -> Any:
    """The shape of an item for each text."""
    shapes = shape.fields.values() if isinstance(shape, Answer) else [shape]
    return next(field_shape[0] for field_shape in shapes if isinstance(field_shape, list))
