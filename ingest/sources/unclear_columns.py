"""What is said where it is unclear which columns of a source hold what."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

SHOWN_CHARACTERS = 1000
LONG_NAME = 40  # characters, of what is rather a text than a name


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a column is not found. remedy: empty where the reason names the flag; keys: whether it says what is
    there.
    """

    reason: str
    remedy: str = ""
    keys: bool = False


def problem_message(problems: Sequence[Problem], names: Sequence[str]) -> str:
    """The problems in one sentence, with the columns that there are."""
    if len(problems) == 1:
        (only,) = problems
        columns = "" if only.keys else f"; {shown_columns(names)}"
        return only.reason + columns + (f": {only.remedy}" if only.remedy else "")
    reasons = [problem.reason + (f" ({problem.remedy})" if problem.remedy else "") for problem in problems]
    return f"{'; '.join(reasons)}; {shown_columns(names)}"


def shown_columns(names: Iterable[str]) -> str:
    """The names of a source's columns, for messages."""
    return f"the columns are {', '.join(names)[:SHOWN_CHARACTERS]}"


def missing_path(
    names: Sequence[str], records: Sequence[Mapping[str, Any]], wanted: str, flag: str
) -> Problem | None:
    """Why a name leads nowhere; None where it does not."""
    if wanted in names:
        return None
    reason = f"no column {wanted!r:.200} ({flag})"
    first, *parts = wanted.split(".")
    if first not in names:
        return Problem(reason)
    values = [record[first] for record in records if record.get(first) is not None]
    walked = first
    for part in parts if values else ():
        objects = [item for value in values for item in _items(value) if isinstance(item, Mapping)]
        keys = dict.fromkeys(key for item in objects for key in item)
        if part not in keys:
            has = f"has the keys {', '.join(keys)}"[:SHOWN_CHARACTERS] if keys else "is no object"
            return Problem(f"{reason}; {walked!r:.200} {has}", keys=True)
        values = [item[part] for item in objects if part in item]
        walked += f".{part}"
    return None


def _items(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else [value]


def seem_values(names: Iterable[str]) -> bool:
    """Whether some names of columns are rather values of a row: numbers, or texts."""
    return any(len(name) > LONG_NAME or _is_number(name) for name in names)


def _is_number(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return False
    return True
