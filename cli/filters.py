"""The flags `--filter` and `--boost`: conditions in short, or JSON as the server reads it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any

import typer

Filters = Annotated[
    list[str] | None,
    typer.Option(
        "--filter",
        metavar="CONDITION",
        help='Such as lang=en, year>=2020 or {"in": {"lang": ["en", "ko"]}}; also !=, <, >, <=. All that are '
        "given must hold. Quote what has < or >.",
        show_default=False,
    ),
]
SHORT = re.compile(r"(?P<field>[^=<>!]+?)\s*(?P<sign>!=|>=|<=|=|>|<)\s*(?P<value>[^=<>!\s].*)", re.S)
COMPARISONS = {"=": "eq", "!=": "eq", ">=": "gte", ">": "gt", "<=": "lte", "<": "lt"}


def checked_filter(conditions: Sequence[str] | None) -> Any:
    """The filter that matches where all conditions of the flags do, as JSON has it; None where none is given.

    Raises typer.BadParameter for what is neither a condition in short nor JSON, or InvalidQueryError.
    """
    from tercet.index.documents.filters import parse_filter

    if not conditions:
        return None
    trees = [_tree(condition.strip()) for condition in conditions]
    tree = trees[0] if len(trees) == 1 else {"and": trees}
    parse_filter(tree)
    return tree


def _tree(condition: str) -> Any:
    """One condition as JSON has it. Its value is a number or true or false where it is written as one.

    Put it in quotation marks, as JSON has them, to have text of it: `code="007"`.
    """
    if condition.startswith(("{", "[")):
        return json_of(condition)
    if not (parts := SHORT.fullmatch(condition)):
        raise typer.BadParameter(
            f"{condition!r:.80} is no condition; write one such as lang=en, 'year>=2020' or "
            '\'{"exists": "year"}\'',
            param_hint="--filter",
        )
    compared = {COMPARISONS[parts["sign"]]: {parts["field"]: _value(parts["value"])}}
    return {"not": compared} if parts["sign"] == "!=" else compared


def _value(text: str) -> Any:
    import orjson

    from tercet.index.documents.json_values import loads

    try:
        value = loads(text.encode())
    except orjson.JSONDecodeError:
        return text
    return value if isinstance(value, str | int | float) else text


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
