"""The front matter of Markdown, values before its text: YAML in lines of `---`, or TOML in those of `+++`."""

from __future__ import annotations

import datetime
import math
import re
import tomllib
from collections.abc import Mapping
from typing import Any

import yaml

from tercet.index.errors import InvalidDocumentError

MOST_FRONT_MATTER_CHARACTERS = 2**16
_YAML = re.compile(r"---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_TOML = re.compile(r"\+\+\+[ \t]*\n(.*?)^\+\+\+[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_FIRST_KEY = re.compile(r"(?:[ \t]*(?:#.*)?\n)*[\w\"'][^\n]*?:(?:\s|\Z)")


def parted(text: str) -> tuple[Mapping[str, Any], str]:
    """The front matter of a file, and the text below it.

    Of the front matter are kept scalars and lists of these; dates become text. Raises InvalidDocumentError
    where it is none that can be read.
    """
    toml, match = _TOML.match(text), _YAML.match(text)
    if match is not None and match[1].strip() and _FIRST_KEY.match(match[1]) is None:
        match = None  # text between two lines
    match = toml or match
    if match is None:
        return {}, text
    if len(match[1]) > MOST_FRONT_MATTER_CHARACTERS:
        raise InvalidDocumentError(
            f"its front matter has {len(match[1])} characters, at most {MOST_FRONT_MATTER_CHARACTERS} are "
            "read: make it shorter"
        )
    values = _of_toml(match[1]) if toml else _of_yaml(match[1])
    items = values.items() if isinstance(values, Mapping) else ()
    kept = {str(key): _kept(value) for key, value in items}
    return {key: value for key, value in kept.items() if value is not None}, text[match.end() :]


def _of_toml(front: str) -> object:
    try:
        return tomllib.loads(front)
    except (ValueError, RecursionError) as error:
        raise InvalidDocumentError(f"its front matter is no TOML ({error}); correct it") from error


def _of_yaml(front: str) -> object:
    try:
        return yaml.load(front, _PlainLoader)  # noqa: S506 - a loader of plain values
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        line = getattr(getattr(error, "problem_mark", None), "line", None)
        where = "" if line is None else f" at line {line + 2}"
        problem = getattr(error, "problem", None) or error
        raise InvalidDocumentError(
            f"its front matter is no YAML{where} ({problem}); put quotes around a value that holds a colon"
        ) from error


class _PlainLoader(yaml.SafeLoader):
    """YAML without aliases, by which a few lines stand for any number of values."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            mark: yaml.Mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.composer.ComposerError(None, None, "aliases are not read", mark)
        return super().compose_node(parent, index)


def _kept(value: object) -> Any:
    """A scalar, or a list of these; None of anything else."""
    if isinstance(value, list):
        inside = [_kept(element) for element in value if not isinstance(element, list)]
        return [element for element in inside if element is not None]
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float) else None
