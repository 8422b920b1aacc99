"""What holds of the shapes of all request bodies, those of compatible routes included."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Annotated, Any, Union, get_args, get_origin

import pytest
from fastapi.routing import APIRoute, iter_route_contexts
from pydantic import TypeAdapter

from tercet.service.app import create_app
from tercet.service.schemas.base import Body
from tercet.service.settings.settings import Settings

Shape = type[Body]


def shapes(base: Shape = Body) -> Iterator[Shape]:
    for shape in base.__subclasses__():
        yield shape
        yield from shapes(shape)


def bodies() -> dict[str, Any]:
    """Operation → the type of its body."""
    found: dict[str, Any] = {}
    for context in iter_route_contexts(create_app(Settings()).routes):
        route = context.original_route
        if isinstance(route, APIRoute) and route.body_field is not None:
            found[f"{sorted(route.methods)[0]} {route.path}"] = route.body_field.field_info.annotation
    return found


BODIES = bodies()


def takes_null(annotation: Any) -> bool:
    if get_origin(annotation) is Annotated:
        return takes_null(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        return any(map(takes_null, get_args(annotation)))
    return annotation is type(None)


def test_every_field_that_may_be_missing_may_be_null() -> None:
    found = list(shapes())
    assert len(found) > 30
    refused = [
        f"{shape.__name__}.{name}"
        for shape in found
        for name, field in shape.model_fields.items()
        if not field.is_required() and not takes_null(field.annotation)
    ]
    assert refused == []


@pytest.mark.parametrize("operation", BODIES)
def test_null_is_the_default(operation: str) -> None:
    for shape in get_args(BODIES[operation]) or (BODIES[operation],):
        if shape is type(None):
            continue
        example = shape.model_config["json_schema_extra"]["examples"][0]
        needed = {name: example[name] for name, field in shape.model_fields.items() if field.is_required()}
        nulls = {name: None for name in shape.model_fields if name not in needed}
        assert shape.model_validate({**nulls, **needed}) == shape.model_validate(needed)


def schemas_of(schema: Any) -> Iterator[dict[str, Any]]:
    """Every part of a validator's schema."""
    if isinstance(schema, dict):
        if "type" in schema:
            yield schema
        for name, inner in schema.items():
            if name not in ("metadata", "serialization"):
                yield from schemas_of(inner)
    elif isinstance(schema, list | tuple):
        for inner in schema:
            yield from schemas_of(inner)


def lists_in(schema: dict[str, Any]) -> int:
    """How many lists a value may be, without those within it."""
    if schema["type"] == "list":
        return 1
    if schema["type"] == "union":
        choices = (one[0] if isinstance(one, tuple) else one for one in schema["choices"])
        return sum(map(lists_in, choices))
    return lists_in(schema["schema"]) if "schema" in schema and schema["type"] != "model" else 0


@pytest.mark.parametrize("operation", BODIES)
def test_checking_a_body_ends_at_the_first_mistake(operation: str) -> None:
    """Else what is complained of grows with the body: seconds for a hundred thousand items."""
    for schema in schemas_of(TypeAdapter(BODIES[operation]).core_schema):
        if schema["type"] == "list" and schema["items_schema"]["type"] != "any":
            assert schema.get("fail_fast") or schema.get("max_length", 99) <= 2, schema
        if schema["type"] == "union":
            assert lists_in(schema) <= 1, schema
