"""Values and failures of the system as messages have them, whatever the language of who reads them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from difflib import get_close_matches

SHOWN_CHARACTERS = 80
MOST_NAMES = 3  # instead of one that is not there
_NEAR, _OTHERS = ", or did you mean ", "; there are "
_MOST_BITS = 160  # Python writes no integer of 4,300 digits
_NUMBER = re.compile(r"^\[Errno -?\d+\] ")  # of what repeats a failure of the system


def shown(value: object, most: int = SHOWN_CHARACTERS) -> str:
    """A value as JSON has it, such as `null` or `"tea"`, with `…` for what is beyond so many characters."""
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        return f"an integer of {value.bit_length()} bits"
    try:
        whole = f"{value[:most]}…" if isinstance(value, str) and len(value) > most else value
        text = json.dumps(whole, ensure_ascii=False, default=str)
    except (TypeError, ValueError, RecursionError):  # what holds itself, or such an integer
        text = str(type(value).__name__)
    cut = text if len(text) <= most or isinstance(value, str) else f"{text[:most]}…"
    return "".join(mark if mark.isprintable() else json.dumps(mark)[1:-1] for mark in cut)


def names_instead(name: str, names: Sequence[str]) -> str:
    """To be put behind a message that there is nothing of a name: the nearest names, else the first ones."""
    if near := get_close_matches(name, names, MOST_NAMES):
        return f"{_NEAR}{' or '.join(near)}?"
    others = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return f"{_OTHERS}{', '.join(names[:MOST_NAMES])}{others}" if names else ""


def without_names_instead(message: str) -> str:
    """Such a message without the names."""
    return message.partition(_NEAR)[0].partition(_OTHERS)[0]


def reason_of(error: BaseException) -> str:
    """What went wrong, in the words of the system where they are its: `No space left on device`."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    if isinstance(error, KeyError) and error.args:
        return f"{shown(error.args[0])} is missing"
    return _NUMBER.sub("", str(error)) or type(error).__name__


def failure_text(error: BaseException) -> str:
    """What went wrong, with the file where the system names one: `/data/a: Permission denied`."""
    file = error.filename if isinstance(error, OSError) and error.strerror else None
    return f"{file}: {reason_of(error)}" if isinstance(file, str) else reason_of(error)
