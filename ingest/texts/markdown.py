"""Markdown: its headings, and the front matter before it."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Mapping
from functools import cache
from itertools import pairwise
from typing import Any

import yaml
from markdown_it import MarkdownIt
from markdown_it.token import Token

from tercet.index.errors import InvalidDocumentError
from tercet.ingest.passages.outline import Heading, Slugs

MOST_FRONT_MATTER_CHARACTERS = 2**16
_FRONT_MATTER = re.compile(r"---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_FIRST_KEY = re.compile(r"(?:[ \t]*(?:#.*)?\n)*[\w\"'][^\n]*?:(?:\s|\Z)")
_LINE_END = re.compile(r"\r\n|\r|\n")
_NAMED = re.compile(r"\s*\{:?\s*#([^\s}]+)[^}]*\}\s*$")  # as of Pandoc and of Python-Markdown


def headings_of(text: str) -> tuple[Heading, ...]:
    """The headings of CommonMark that are in no list and no quotation, in order."""
    if "#" not in text and "==" not in text and "--" not in text:
        return ()
    parser = _parser()
    tokens = parser.parse(text)
    lines = [0, *(end.end() for end in _LINE_END.finditer(text)), len(text)]
    slugs, headings = Slugs(), []
    for token, inside in pairwise(tokens):
        if token.type != "heading_open" or token.map is None:
            continue
        source = inside.content
        named = _NAMED.search(source)
        title = _plain(parser, source[: named.start()] if named else source)
        slug = slugs.distinct(named[1]) if named else slugs.of(title)
        if token.level == 0 and title:
            start, end = (lines[min(line, len(lines) - 1)] for line in token.map)
            headings.append(Heading(start, end, int(token.tag[1]), title, slug, slug or None))
    return tuple(headings)


def parted(text: str) -> tuple[Mapping[str, Any], str]:
    """The front matter of a file (YAML between lines of `---`), and the text below it.

    Of the front matter are kept scalars and lists of these; dates become text. Raises InvalidDocumentError
    where it is none that can be read.
    """
    match = _FRONT_MATTER.match(text)
    if match is None or _FIRST_KEY.match(match[1]) is None:
        return {}, text
    if len(match[1]) > MOST_FRONT_MATTER_CHARACTERS:
        raise InvalidDocumentError(
            f"its front matter has {len(match[1])} characters, at most {MOST_FRONT_MATTER_CHARACTERS} are "
            "read: make it shorter"
        )
    try:
        values = yaml.load(match[1], _PlainLoader)  # noqa: S506 - a loader of plain values
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        line = getattr(getattr(error, "problem_mark", None), "line", None)
        where = "" if line is None else f" at line {line + 2}"
        problem = getattr(error, "problem", None) or error
        raise InvalidDocumentError(
            f"its front matter is no YAML{where} ({problem}); put quotes around a value that holds a colon"
        ) from error
    items = values.items() if isinstance(values, Mapping) else ()
    kept = {str(key): _kept(value) for key, value in items}
    return {key: value for key, value in kept.items() if value is not None}, text[match.end() :]


@cache
def _parser() -> MarkdownIt:
    """A parser of blocks alone: what is inside of them takes most of the time."""
    parser = MarkdownIt("commonmark")
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


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
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float) else None


def _plain(parser: MarkdownIt, source: str) -> str:
    """A heading's words, without what marks them."""
    tokens: list[Token] = []
    parser.inline.parse(source, parser, {}, tokens)
    return " ".join("".join(map(_words, tokens)).split())


def _words(token: Token) -> str:
    if token.type in ("text", "code_inline", "text_special"):
        return token.content
    if token.type == "image":
        return token.content
    return " " if token.type in ("softbreak", "hardbreak") else ""
