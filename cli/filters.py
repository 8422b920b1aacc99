"""The flags `--filter` and `--boost`: JSON, read as the server reads it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

FilterJson = Annotated[
    str | None,
    typer.Option("--filter", metavar="JSON", help='Such as {"eq": {"lang": "en"}}.', show_default=False),
]


def checked_filter(text: str | None) -> Any:
    """The filter of a flag as JSON has it, None where it is not given. Raises typer.BadParameter for what is
    not JSON, or InvalidQueryError.
    """
    from tercet.index.documents.filters import parse_filter

    if text is None:
        return None
    tree = json_of(text)
    parse_filter(tree)
    return tree


def checked_boosts(texts: Sequence[str]) -> list[Any]:
    """The boosts of flags as JSON has them. Raises typer.BadParameter for what is not JSON, or
    InvalidQueryError.
    """
    from tercet.index.documents.boosts import parse_boost

    boosts = [json_of(text, "--boost") for text in texts]
    for boost in boosts:
        parse_boost(boost)
    return boosts


def json_of(text: str, flag: str = "--filter") -> Any:
    """The value of a flag's JSON. Raises typer.BadParameter."""
    import orjson

    from tercet.index.documents.json_values import loads

    try:
        return loads(text.encode())
    except orjson.JSONDecodeError as error:
        raise typer.BadParameter(f"{text!r:.80} is not JSON ({error})", param_hint=flag) from error
