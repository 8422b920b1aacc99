"""What is wrong with a value, in words: the value and what to use instead, from Pydantic's complaint."""

from __future__ import annotations

import re
from ast import literal_eval
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tercet.index.wording import shown

SHOWN_CHARACTERS = 40
LEAVE_OUT = "leave it out"
NONE_OF_THESE = (
    "none_of_these"  # the complaint about what is no alternative of `discriminated`; says what to use
)
# Types of complaints: about a list that is over a setting, and about token ids where texts are wanted.
TOO_MANY, TOKEN_IDS = "too_many", "token_ids"

NAME_PATTERN = r"^[a-z0-9][a-z0-9_-]{0,63}$"
# A pattern → what matches it, in words.
PATTERNS: Mapping[str, str] = {
    NAME_PATTERN: "1 to 64 of a to z, 0 to 9, - and _, a letter or digit first",
}

# Type of a complaint → what to use instead, with the limits of its context.
REMEDIES: Mapping[str, str] = {
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "dict_type": "an object",
    "finite_number": "a finite number",
    "float_parsing": "a number",
    "float_type": "a number",
    "greater_than": "more than {gt}",
    "greater_than_equal": "at least {ge}",
    "int_from_float": "an integer",
    "int_parsing": "an integer",
    "int_parsing_size": "a smaller integer",
    "int_type": "an integer",
    "less_than": "less than {lt}",
    "less_than_equal": "at most {le}",
    "list_type": "a list",
    "literal_error": "{expected}",
    "model_attributes_type": "an object",
    "model_type": "an object",
    "string_pattern_mismatch": "a string that matches {pattern}",
    "string_too_long": "at most {max_length} characters",
    "string_too_short": "at least {min_length} characters",
    "string_or_object": "a string or an object",
    "string_type": "a string",
    "too_long": "at most {max_length} items",
    "too_short": "at least {min_length} items",
}

_ALTERNATIVE = re.compile(r"'[^']*'|True|False|None")  # as Pydantic lists them, in Python's words

# Field → what its object may be.
OBJECTS: Mapping[str, str] = {
    "weights": ' such as {"dense": 1, "sparse": 0.3, "colbert": 1}',
    "window": ' such as {"tokens": 256}',
}


@dataclass(frozen=True, slots=True)
class UnknownField:
    """What stands in the place of an unknown field's value until it is complained of.

    remedy: what to do instead.
    """

    remedy: str


def message_of(name: str, details: Sequence[Mapping[str, Any]]) -> str:
    """What is wrong with the value called so.

    details: Pydantic's complaints of it, one for each alternative that it may be. Of several, those alone
    count that take the value to be of their kind; where there are none, all alternatives are named.
    """
    detail = details[0]
    if detail["type"] == "missing":
        return f"{name} is missing; give it"
    if detail["type"] == "extra_forbidden":
        unknown = detail["input"]
        return f"{name}: no such field; {unknown.remedy if isinstance(unknown, UnknownField) else LEAVE_OUT}"
    meant = [complaint for complaint in details if not is_another_kind(complaint)] or details
    for complaint in meant:
        if (
            complaint["type"] not in REMEDIES and complaint["type"] != NONE_OF_THESE
        ):  # a rule of ours, in words of its own
            return f"{name}: " + str(complaint["msg"]).removeprefix("Value error, ")
    remedies = dict.fromkeys(_remedy(name, complaint) for complaint in meant)
    return f"{name} is {_shown(detail['input'])}; use {' or '.join(remedies)}"


def _remedy(name: str, detail: Mapping[str, Any]) -> str:
    if detail["type"] == NONE_OF_THESE:
        return str(detail["msg"])
    limits = {
        key: int(limit) if isinstance(limit, float) and limit.is_integer() else limit
        for key, limit in detail.get("ctx", {}).items()
    }
    if in_words := PATTERNS.get(str(limits.get("pattern"))):
        return in_words
    if detail["type"] == "literal_error":
        alternatives = str(limits["expected"])
        limits["expected"] = _ALTERNATIVE.sub(lambda value: shown(literal_eval(value[0])), alternatives)
    remedy = REMEDIES[detail["type"]].format_map(limits)
    if remedy == "an object":
        return remedy + OBJECTS.get(name, "")
    return re.sub(r" 1 (item|character)s$", r" 1 \1", remedy)


def is_another_kind(detail: Mapping[str, Any]) -> bool:
    """Whether a value is no kind of what this alternative takes: another JSON type, or no known name."""
    return str(detail["type"]).endswith("_type") or detail["type"] == "literal_error"


def _shown(value: object) -> str:
    """A value as it may stand in a message; of one that holds others, what it is."""
    if isinstance(value, dict | list) and value:
        return "an object" if isinstance(value, dict) else f"a list of {len(value)}"
    return shown(value, SHOWN_CHARACTERS)
