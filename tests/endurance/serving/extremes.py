"""The largest bodies that a server's description of itself allows, and the largest that it does not.

They are made for every operation of the description, so that one that is added is among them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

VALUES = 149_000  # just below what the server counts up to
KEYS = 8_000
LEVELS = 2  # how far into a body fields are looked for
CHOICES = 5  # of more alternatives, as a filter has, the fields are not looked at
MARK = "the extreme value goes here"
# JSON texts of which a list may hold very many, whatever it should hold.
WRONG_ITEMS = ("0.5", "-1", '""', "null", "{}")
PARAMETERS = {
    "name": "demo",
    "alias": "second",
    "document_id": "tea",
    "job_id": "a",
    "backup_id": "a",
    "model": "a",
}

Schema = Mapping[str, Any]
Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Extreme:
    """One request: what it is, where it goes, and its JSON."""

    name: str
    method: str
    path: str
    body: bytes


class Description:
    """A server's description of itself, as what bodies its operations take."""

    def __init__(self, description: Mapping[str, Any]) -> None:
        self._paths: Mapping[str, Mapping[str, Any]] = description["paths"]
        self._schemas: Mapping[str, Schema] = description.get("components", {}).get("schemas", {})

    @property
    def operations(self) -> list[tuple[str, str]]:
        """Method and path of each operation."""
        return [(method.upper(), path) for path, methods in self._paths.items() for method in methods]

    def extremes(self, method: str, path: str, body_bytes: int, lengths: Sequence[int]) -> Iterator[Extreme]:
        """The requests to one operation.

        body_bytes: the largest body; lengths: of lists, that settings limit to.
        """
        bodies = self._bodies(self._paths[path][method.lower()], body_bytes, lengths)
        for name, body in bodies:
            yield Extreme(f"{method} {path}: {name}", method, path.format(**PARAMETERS), body)

    def _bodies(
        self, operation: Schema, body_bytes: int, lengths: Sequence[int]
    ) -> Iterator[tuple[str, bytes]]:
        yield "blanks", b" " * body_bytes
        yield "values", _list("0", VALUES).encode()
        yield "no JSON", b'{"a":"' + b"a" * (body_bytes - 6)
        content = operation.get("requestBody", {}).get("content", {})
        if "application/json" not in content:
            return
        schema = content["application/json"]["schema"]
        whole = True  # one string of all the bytes is enough: they take as long to read wherever they are
        for example, needed in self._examples(schema):
            yield "unknown fields", _with_entries(example, _keys())
            for place, schemas in self._places(schema):
                where = ".".join(map(str, place))
                # What an example has may exclude what it has not, or be needed beside it.
                bases = [needed] if place[0] in example or needed == example else [example, needed]
                for name, text in self._texts(schemas, body_bytes if whole else body_bytes // 8, lengths):
                    whole = whole and name != "string"
                    for base in bases:
                        body = json.dumps(_placed(base, place)).replace(json.dumps(MARK), text).encode()
                        if len(body) <= body_bytes:
                            yield f"{where} {name}{'' if base is needed else ', not alone'}", body

    def _examples(self, schema: Schema) -> Iterator[tuple[Any, Any]]:
        """A body, and what of it is required."""
        for one in self._alternatives(schema):
            for example in one.get("examples", [])[:1]:
                yield example, {name: example[name] for name in one.get("required", ())}

    def _places(self, schema: Schema) -> Iterator[tuple[Path, list[Schema]]]:
        """Where in a body a value may be, and what it may be there, by what is described."""
        waiting: list[tuple[Path, list[Schema]]] = [((), list(self._alternatives(schema)))]
        while waiting:
            place, schemas = waiting.pop()
            if place:
                yield place, schemas
            if len(place) == LEVELS or len(schemas) > CHOICES:
                continue
            for one in schemas:
                for name, inner in one.get("properties", {}).items():
                    waiting.append(((*place, name), list(self._alternatives(inner))))
                if "items" in one:
                    waiting.append(((*place, 0), list(self._alternatives(one["items"]))))

    def _alternatives(self, schema: Schema) -> Iterator[Schema]:
        """The schemas that are no choice among others and no reference."""
        if "$ref" in schema:
            yield from self._alternatives(self._schemas[schema["$ref"].rpartition("/")[2]])
            return
        choices = [*schema.get("anyOf", ()), *schema.get("oneOf", ())]
        for choice in choices:
            yield from self._alternatives(choice)
        if not choices:
            yield schema

    def _texts(
        self, schemas: Sequence[Schema], body_bytes: int, lengths: Sequence[int]
    ) -> Iterator[tuple[str, str]]:
        """JSON texts of what may be in a place, as large as can be, and of what may not."""
        room = body_bytes - 4096
        kinds = {schema.get("type") for schema in schemas}
        yield "nested", "[" * 900 + "]" * 900
        yield "long number", "1" * 400
        yield "rows", _list("[0.5]", VALUES // 2)
        if any(schema.get("type") == "string" and "maxLength" not in schema for schema in schemas):
            yield "string", json.dumps("a" * room)
        if "object" in kinds:
            yield "entries", "{" + ",".join(f"{key}:0" for key in _keys()) + "}"
        if "array" in kinds:
            for item in WRONG_ITEMS:
                yield f"{VALUES} of {item}", _list(item, VALUES)
        for schema in schemas:
            for item in self._items(schema):
                most = schema.get("maxItems", VALUES)
                for count in sorted({most, *(length for length in lengths if length <= most)}):
                    size = (room // count) - len(item) - 1
                    filled = item.replace('"tea"', json.dumps("tea " * (size // 4))) if size > 8 else item
                    for text in dict.fromkeys((item, filled)):
                        if _values(text) * count <= VALUES and text.count(":") * count <= KEYS:
                            yield f"{count} of {text[:40]}", _list(text, count)
            if schema.get("type") == "object" and schema.get("additionalProperties"):
                objects = '{"b":' + _list("0", VALUES // KEYS - 2) + "}"
                for item in ("0", json.dumps("a" * (room // VALUES - 4)), "[0]", objects):
                    count = KEYS - 10 if ":" in item else (VALUES - 100) // _values(item)
                    yield f"an entry of {item[:9]}", '{"a":' + _list(item, count) + "}"

    def _items(self, schema: Schema) -> Iterator[str]:
        """JSON texts of items of a list, as small as they can be, and of objects with a large one."""
        if "items" not in schema:
            return
        for item in self._alternatives(schema["items"]):
            small = self._least(item)
            yield json.dumps(small)
            free = [
                name
                for name, inner in item.get("properties", {}).items()
                if any(one.get("additionalProperties") is True for one in self._alternatives(inner))
            ]
            if free:
                yield json.dumps({**small, free[0]: {"a": [0] * 140}})
            if "items" in item:
                (first,) = list(self._alternatives(item["items"]))[:1]
                yield json.dumps([self._least(first)] * 128)

    def _last(self, schema: Schema) -> Schema:
        """The last of the alternatives: of those of a filter, it alone holds no other filter."""
        *_, last = self._alternatives(schema)
        return last

    def _least(self, schema: Schema) -> Any:
        """As little as fits a schema."""
        kind = schema.get("type")
        if "enum" in schema or "const" in schema:
            return schema.get("const", schema.get("enum", [None])[0])
        if kind == "object":
            needed = {name: schema["properties"][name] for name in schema.get("required", ())}
            return {name: self._least(self._last(inner)) for name, inner in needed.items()}
        if kind == "array":
            return [self._least(self._last(schema["items"]))] * max(1, schema.get("minItems", 0))
        return {"string": "tea", "integer": 1, "number": 0.5, "boolean": True}.get(kind or "")


def _keys() -> list[str]:
    return [f'"k{number}"' for number in range(KEYS)]


def _list(item: str, count: int) -> str:
    """A list of so many, told apart by their id where they have one."""
    before, mark, after = item.partition('"id": "tea')
    items = [f"{before}{mark}{number}{after}" for number in range(count)] if mark else [item] * count
    return "[" + ",".join(items) + "]"


def _values(text: str) -> int:
    return text.count(",") + text.count("[") + text.count("{") + 1


def _with_entries(example: Any, keys: Sequence[str]) -> bytes:
    inner = json.dumps(example)[1:-1]
    return ("{" + ",".join([*([inner] if inner else []), *(f"{key}:0" for key in keys)]) + "}").encode()


def _placed(example: Any, place: Path) -> Any:
    """A copy of an example with the mark at a place; what is on the way there is made."""
    if not place:
        return MARK
    first, *rest = place
    if isinstance(first, int):
        inner = example[0] if isinstance(example, list) and example else None
        return [_placed(inner, tuple(rest))]
    fields = example if isinstance(example, dict) else {}
    return {**fields, first: _placed(fields.get(first), tuple(rest))}
