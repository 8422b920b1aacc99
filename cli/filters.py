"""The flag `--filter`: JSON, read as the server reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from index.documents.filters import Filter


def parse_filter(text: str) -> Filter:
    """The filter of a flag. Raises typer.BadParameter for what is not JSON, or InvalidQueryError."""
    from index.documents.filters import parse_filter as parsed

    return parsed(filter_json(text))


def filter_json(text: str) -> Any:
    """The value of a flag's JSON. Raises typer.BadParameter."""
    import orjson

    from index.documents.json_values import loads

    try:
        return loads(text.encode())
    except orjson.JSONDecodeError as error:
        raise typer.BadParameter(f"{text!r:.80} is not JSON ({error})", param_hint="--filter") from error
