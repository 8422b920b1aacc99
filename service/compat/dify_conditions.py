"""Dify's conditions on metadata as filters over declared fields."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import Field, Tag

from tercet.index.documents.filters import MAX_CONDITIONS, Filter, parse_filter
from tercet.index.errors import InvalidQueryError
from tercet.index.wording import shown
from tercet.service.compat.shapes import CompatibleRequest
from tercet.service.exceptions import InvalidRequestError
from tercet.service.schemas.base import discriminated

Operator = Literal[
    "is",
    "is not",
    "in",
    "not in",
    "empty",
    "not empty",
    "=",
    "≠",
    ">",
    "<",
    "≥",
    "≤",
    "before",
    "after",
    "contains",
    "not contains",
    "start with",
    "end with",
]
WITHIN_TEXTS = ("contains", "not contains", "start with", "end with")
OF_NUMBERS = ("=", "≠", ">", "<", "≥", "≤")
COMPARED = {">": "gt", "<": "lt", "≥": "gte", "≤": "lte", "before": "lt", "after": "gt"}


def _kind(value: object) -> str:
    if isinstance(value, bool):
        return ""
    return {str: "text", int: "integer", float: "number", list: "several"}.get(type(value), "")


ScalarValue = Annotated[
    Annotated[str, Tag("text")] | Annotated[int, Tag("integer")] | Annotated[float, Tag("number")],
    *discriminated(_kind, "a string or a number"),
]
ScalarList = Annotated[list[ScalarValue], Field(fail_fast=True)]


class DifyCondition(CompatibleRequest):
    """What a declared field of a document must be."""

    name: str = Field(description="A declared field.")
    comparison_operator: Operator = Field(
        description="`contains`, `not contains`, `start with` and `end with` are refused: filters do not "
        "look into texts."
    )
    value: (
        Annotated[
            Annotated[str, Tag("text")]
            | Annotated[int, Tag("integer")]
            | Annotated[float, Tag("number")]
            | Annotated[ScalarList, Tag("several")],
            *discriminated(_kind, "a string, a number or a list of these"),
        ]
        | None
    ) = Field(None, description="`in` and `not in` take a list; `empty` and `not empty` take none.")


class DifyMetadataCondition(CompatibleRequest):
    """Conditions on metadata."""

    logical_operator: Literal["and", "or"] | None = "and"
    conditions: Annotated[list[DifyCondition], Field(max_length=MAX_CONDITIONS, fail_fast=True)] | None = None


def filter_of(given: DifyMetadataCondition | None) -> Filter | None:
    """The filter of conditions; None where there are none. Raises InvalidRequestError."""
    if given is None or not given.conditions:
        return None
    parts = [
        _tree(condition, f"metadata_condition.conditions.{index}")
        for index, condition in enumerate(given.conditions)
    ]
    try:
        return parse_filter({given.logical_operator or "and": parts})
    except InvalidQueryError as error:
        raise InvalidRequestError(str(error), "metadata_condition", "invalid_filter") from error


def _tree(condition: DifyCondition, param: str) -> dict[str, Any]:
    """The filter's JSON of one condition."""
    name, operator = condition.name, condition.comparison_operator
    if operator in WITHIN_TEXTS:
        raise InvalidRequestError(
            f"{param}.comparison_operator is {shown(operator)}; filters compare whole values: use is, in, a "
            "comparison, or their opposites",
            f"{param}.comparison_operator",
            "unsupported",
        )
    if operator in ("empty", "not empty"):
        there = {"exists": name}
        return there if operator == "not empty" else {"not": there}
    value = condition.value
    if operator in ("in", "not in"):
        among = {"in": {name: value if isinstance(value, list) else [_scalar(condition, param)]}}
        return among if operator == "in" else {"not": among}
    scalar = _scalar(condition, param)
    if operator in OF_NUMBERS:
        scalar = _number(scalar, f"{param}.value")
    if operator in COMPARED:
        return {COMPARED[operator]: {name: scalar}}
    same = {"eq": {name: scalar}}
    return same if operator in ("is", "=") else {"not": same}


def _scalar(condition: DifyCondition, param: str) -> str | float:
    """The condition's value, where it is one."""
    value = condition.value
    if value is None or isinstance(value, list):
        given = "missing" if value is None else "a list"
        raise InvalidRequestError(
            f"{param}.value is {given}; {condition.comparison_operator!r} takes a string or a number",
            f"{param}.value",
        )
    return value


def _number(value: str | float, param: str) -> float:
    """A number, which Dify's fields give as text, too."""
    if not isinstance(value, str):
        return value
    readers: tuple[Callable[[str], float], ...] = (int, float)
    for read in readers:
        try:
            number = read(value)
        except ValueError:
            continue
        if math.isfinite(number):
            return number
    raise InvalidRequestError(f"{param} is {shown(value)}; this operator takes a number", param)
