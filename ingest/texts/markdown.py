"""The headings of Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from html import unescape
from itertools import pairwise

from markdown_it import MarkdownIt
from markdown_it.token import Token

from tercet.ingest.passages.outline import Heading, Slugs

_LINE_END = re.compile(r"\r\n|\r|\n")
_HTML_HEADING = re.compile(r"<h([1-6])\b[^>]*>(.*?)</h\1\s*>", re.DOTALL | re.IGNORECASE)
_TAG = re.compile(r"<[^>]*>")
_NAMED = re.compile(r"\s*\{:?\s*#([^\s}]+)[^}]*\}\s*$")  # as of Pandoc and of Python-Markdown


def headings_of(text: str) -> tuple[Heading, ...]:
    """The headings of CommonMark and in blocks of HTML that are in no list and no quotation, in order."""
    if not any(mark in text for mark in ("#", "==", "--", "<h", "<H")):
        return ()
    parser = _parser()
    tokens = parser.parse(text)
    lines = [0, *(end.end() for end in _LINE_END.finditer(text)), len(text)]
    slugs, headings = Slugs(), list[Heading]()
    for token, inside in pairwise([*tokens, *tokens[-1:]]):
        if token.type == "html_block" and token.map is not None and token.level == 0:
            start, end = (lines[min(line, len(lines) - 1)] for line in token.map)
            headings += _of_html(text, start, end, slugs)
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


def _of_html(text: str, start: int, end: int, slugs: Slugs) -> Iterator[Heading]:
    """The headings in a block of HTML, such as the centred name with a picture that a README begins with."""
    for match in _HTML_HEADING.finditer(text, start, end):
        title = " ".join(unescape(_TAG.sub("", match[2])).split())
        if title:
            slug = slugs.of(title)
            yield Heading(match.start(), match.end(), int(match[1]), title, slug, slug or None)


@cache
def _parser() -> MarkdownIt:
    """A parser of blocks alone: what is inside of them takes most of the time."""
    parser = MarkdownIt("commonmark")
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


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
