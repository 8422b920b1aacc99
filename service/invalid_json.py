"""What is wrong with a text that is no JSON, in words: where, what stands there, and what to use instead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SHOWN_CHARACTERS = 20
NO_NUMBERS = ("NaN", "Infinity", "-Infinity")

# Part of what the parser says → what to do.
REMEDIES: Mapping[str, str] = {
    "surrogate": "send the character itself in UTF-8, or both halves of it",
    "infinity": "use a number below 1.8e308, or a string",
    "trailing comma": "leave out the comma",
}


def why_invalid(reason: str, detail: Mapping[str, Any], text: object) -> str:
    """What follows "is not valid JSON".

    reason: the parser's own; detail: Pydantic's complaint, whose location ends with the place; text: of the
    body, where it is known.
    """
    place = (detail["loc"] or (None,))[-1]
    if not isinstance(text, str) or not isinstance(place, int) or not 0 <= place <= len(text):
        return f": {reason}"
    line, before = text.count("\n", 0, place) + 1, text.rfind("\n", 0, place) + 1
    where = f" at line {line}, column {place - before + 1}"
    there = text[place : place + SHOWN_CHARACTERS].lstrip()
    for number in NO_NUMBERS:
        if there.startswith(number):
            return f"{where}: there is no number {number} in JSON; use null"
    remedy = next((remedy for part, remedy in REMEDIES.items() if part in reason), None)
    return f"{where}: {reason}{'' if remedy is None else f'; {remedy}'}"
