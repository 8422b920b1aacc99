"""The types of requests and answers for the clients, from the server's OpenAPI description.

usage: python clients/generate_types.py [--check]

Writes `clients/python/src/tercet_client/types.py` and `clients/javascript/types.d.ts`. --check writes nothing
and exits with 1 where they differ.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CLIENTS = Path(__file__).resolve().parent
PYTHON = CLIENTS / "python" / "src" / "tercet_client" / "types.py"
TYPESCRIPT = CLIENTS / "javascript" / "types.d.ts"
OTHERS = {
    "openai",
    "tei",
    "cohere",
    "jina",
    "ollama",
    "dify",
}  # tags of routes that have clients of their own
REFERENCE = "#/components/schemas/"

Schema = dict[str, Any]


def description() -> Schema:
    """That of a search server with default settings."""
    from tercet.service.app import create_app
    from tercet.service.settings.settings import Settings

    return create_app(Settings()).openapi()


def schemas_used(api: Schema) -> dict[str, Schema]:
    """The named schemas of our own routes, in alphabetical order."""
    found: set[str] = set()
    operations = [one for methods in api["paths"].values() for one in methods.values()]
    waiting = [one for one in operations if not OTHERS & set(one["tags"])]
    while waiting:
        for name in references(waiting.pop()):
            if name not in found:
                found.add(name)
                waiting.append(api["components"]["schemas"][name])
    return {name: api["components"]["schemas"][name] for name in sorted(found)}


def references(value: Any) -> Iterator[str]:
    """The names that a value refers to, however deep."""
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"].removeprefix(REFERENCE)
        for inner in value.values():
            yield from references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from references(inner)


class Language:
    """How a language writes types."""

    null = any = open_object = ""
    scalars: dict[str, str]

    def list_of(self, item: str) -> str:
        """A list."""
        raise NotImplementedError

    def map_of(self, value: str) -> str:
        """An object of any keys."""
        raise NotImplementedError

    def constants(self, values: list[Any]) -> str:
        """One of some values."""
        raise NotImplementedError

    def type_of(self, schema: Schema) -> str:
        """The type of a schema."""
        if "$ref" in schema:
            return str(schema["$ref"].removeprefix(REFERENCE))
        if "const" in schema:
            return self.constants([schema["const"]])
        if "enum" in schema:
            return self.constants(schema["enum"])
        for key in ("anyOf", "oneOf"):
            if key in schema:
                return " | ".join(dict.fromkeys(self.type_of(one) for one in schema[key]))
        if "allOf" in schema:
            (only,) = schema["allOf"]
            return self.type_of(only)
        kind = schema.get("type")
        if kind == "array":
            return self.list_of(self.type_of(schema.get("items", {})))
        if kind == "object":
            values = schema.get("additionalProperties")
            return self.map_of(self.type_of(values) if isinstance(values, dict) else self.any)
        return self.scalars.get(str(kind), self.any)


class Python(Language):
    """TypedDicts, in the form that allows keywords as keys."""

    null, any = "None", "Any"
    scalars: dict[str, str] = {  # noqa: RUF012 - a constant
        "string": "str",
        "integer": "int",
        "number": "float",
        "boolean": "bool",
        "null": "None",
    }

    def list_of(self, item: str) -> str:
        """A list."""
        return f"list[{item}]"

    def map_of(self, value: str) -> str:
        """A dictionary."""
        return f"dict[str, {value}]"

    def constants(self, values: list[Any]) -> str:
        """A Literal."""
        return f"Literal[{', '.join(map(repr, values))}]"

    def module(self, schemas: dict[str, Schema]) -> str:
        """The module's text."""
        parts = [
            '"""Requests and answers, as the server describes them. Made by `clients/generate_types.py`."""',
            "from __future__ import annotations",
            "from typing import Any, Literal, NotRequired, TypedDict, Union",
        ]
        aliases = {name: schema for name, schema in schemas.items() if "properties" not in schema}
        for name, schema in schemas.items():
            if name not in aliases:
                parts.append(self._typed_dict(name, schema))
        for name, schema in aliases.items():
            members = ", ".join(repr(one) for one in self.type_of(schema).split(" | "))
            parts.append(f"{name} = Union[{members}]")
        return "\n\n".join(parts) + "\n"

    def _typed_dict(self, name: str, schema: Schema) -> str:
        required = set(schema.get("required", ()))
        lines = []
        for key, value in schema["properties"].items():
            kind = self.type_of(value)
            if key not in required:
                kind = f"NotRequired[{kind}]"
            lines.append(f'    "{key}": "{kind.replace(chr(34), chr(39))}",')
        body = "\n".join(lines)
        text = textwrap.fill(schema.get("description", name), 100)
        comment = "\n".join(f"# {line}" for line in text.splitlines())
        entries = textwrap.indent(body, "    ")
        return f'{comment}\n{name} = TypedDict(\n    "{name}",\n    {{\n{entries}\n    }},\n)'


class TypeScript(Language):
    """Interfaces."""

    null, any = "null", "unknown"
    scalars: dict[str, str] = {  # noqa: RUF012 - a constant
        "string": "string",
        "integer": "number",
        "number": "number",
        "boolean": "boolean",
        "null": "null",
    }

    def list_of(self, item: str) -> str:
        """An array."""
        return f"Array<{item}>"

    def map_of(self, value: str) -> str:
        """A record."""
        return f"Record<string, {value}>"

    def constants(self, values: list[Any]) -> str:
        """Literals."""
        return " | ".join(f'"{value}"' if isinstance(value, str) else str(value).lower() for value in values)

    def module(self, schemas: dict[str, Schema]) -> str:
        """The declarations."""
        parts = ["// Requests and answers, as the server describes them. Made by clients/generate_types.py."]
        for name, schema in schemas.items():
            lines = [f"/** {schema.get('description', name)} */"]
            if "properties" in schema:
                required = set(schema.get("required", ()))
                lines.append(f"export interface {name} {{")
                for key, value in schema["properties"].items():
                    optional = "" if key in required else "?"
                    lines.append(f"  {key}{optional}: {self.type_of(value)};")
                lines.append("}")
            else:
                lines.append(f"export type {name} = {self.type_of(schema)};")
            parts.append("\n".join(lines))
        return "\n\n".join(parts) + "\n"


def generated() -> dict[Path, str]:
    """File → what it should hold."""
    schemas = schemas_used(description())
    return {PYTHON: Python().module(schemas), TYPESCRIPT: TypeScript().module(schemas)}


def main() -> None:
    """Writes the files, or says which differ."""
    different = [
        path for path, text in generated().items() if not path.exists() or path.read_text("utf-8") != text
    ]
    if "--check" in sys.argv[1:]:
        if different:
            sys.exit("differ from the description: " + ", ".join(str(path) for path in different))
        return
    for path, text in generated().items():
        path.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
