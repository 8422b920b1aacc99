"""The flags `--filter` and `--boost`: JSON, read as the server reads it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from tercet.index.documents.boosts import Boost
    from tercet.index.documents.filters import Filter

FilterJson = Annotated[
    str | None,
    typer.Option("--filter", metavar="JSON", help='Such as {"eq": {"lang": "en"}}.', show_default=False),
]


def parse_filter(text: str | None) -> Filter | None:
    """The filter of a flag, if it is given. Raises typer.BadParameter for what is not JSON, or
    InvalidQueryError.
    """
    from tercet.index.documents.filters import parse_filter as parsed

    return None if text is None else parsed(json_of(text))


def parse_boosts(texts: Sequence[str]) -> tuple[Boost, ...]:
    """The boosts of flags. Raises typer.BadParameter for what is not JSON, or InvalidQueryError."""
    from tercet.index.documents.boosts import parse_boost

    return tuple(parse_boost(json_of(text, "--boost")) for text in texts)


def json_of(text: str, flag: str = "--filter") -> Any:
    """The value of a flag's JSON. Raises typer.BadParameter."""
    import orjson

    from tercet.index.documents.json_values import loads

    try:
        return loads(text.encode())
    except orjson.JSONDecodeError as error:
        raise typer.BadParameter(f"{text!r:.80} is not JSON ({error})", param_hint=flag) from error
