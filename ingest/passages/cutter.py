"""Cuts documents into passages, each of which is a document of its own.

A passage's text is a part of the document's. Its title is the document's, and the headings that it is below:
what it is about is told to the encoder, too. Its metadata are the document's, and:

| | |
|---|---|
| `source` | the document's id; of a file its path |
| `headings` | those that it is below, from the outermost; only where there are some |
| `anchor` | what a link to it ends in: `install` or `page=3`; only where there is one |
| `start`, `end` | its first character in the document's text, and the one after its last |
| `page`, `last_page` | of a document with pages |

Its id is the document's, `#`, and the heading's name; `.2`, `.3` and so on follow where a section takes
several passages. Where there is no heading, or the cut is not at headings, it is a number from 1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from tercet.index.candidates import Document
from tercet.index.documents.store import MAX_ID_BYTES
from tercet.index.errors import InvalidDocumentError
from tercet.ingest.passages.measure import TokenMeasure
from tercet.ingest.passages.outline import Heading, Outline, Section
from tercet.ingest.passages.split import SOURCE, Split
from tercet.ingest.texts.extra import needed_for

BETWEEN_TITLES = " › "
OWN_METADATA = ("headings", "anchor", "start", "end", "page", "last_page")
_BLANK_BEGINNING = re.compile(r"(?:[^\S\n]*\n)*")
_HALF_CHARACTER = re.compile("[\ud800-\udfff]")
# The number of a list's item, whose point ends no sentence; and one at the end of a part.
_NUMBER = re.compile(r"^([^\S\n]*\(?(?:\d{1,3}|[A-Za-z]))\.(?=[^\S\n]+\S)", re.MULTILINE)
_LAST_NUMBER = re.compile(r"^[^\S\n]*\(?(?:\d{1,3}|[A-Za-z])\.\s*\Z", re.MULTILINE)
_LINE_BREAKS = str.maketrans("\n\r\v\f\x85\u2028\u2029", " " * 7)


class _Splitter(Protocol):
    def chunk_indices(self, text: str) -> list[tuple[int, str]]: ...


@dataclass(frozen=True, slots=True)
class _Piece:
    """A part of a text, in characters, the section that it is of, and its place there."""

    start: int
    end: int
    section: Section
    number: int


class PassageCutter:
    """Cuts as a split says; `size` is how many tokens a passage has at most, its title apart."""

    def __init__(self, split: Split, measure: TokenMeasure) -> None:
        """Raises SourceError where a package that cuts is not installed."""
        with needed_for(f"--split {split.kind}"):
            from semantic_text_splitter import MarkdownSplitter, TextSplitter
        self.kind = split.kind
        self.size = split.size or measure.usual_size
        self._measure = partial(measure.tokens, most=self.size)
        self._plain: _Splitter = TextSplitter.from_callback(self._measure, self.size)
        self._markdown: _Splitter = MarkdownSplitter.from_callback(self._measure, self.size)

    @property
    def described(self) -> str:
        """What is done, in words."""
        where = {"markdown": "at headings", "paragraphs": "at blank lines", "tokens": "by size"}[self.kind]
        return f"cut {where} into passages of at most {self.size:,} tokens"

    def passages(self, document: Document, outline: Outline | None = None) -> Iterator[Document]:
        """The passages of a document, in order; of one without any text there are none.

        outline: of a file's text; the text of any other document is taken for Markdown where the cut is at
        headings. Raises InvalidDocumentError where metadata have names that passages use.
        """
        own = OWN_METADATA if outline is not None else (SOURCE, *OWN_METADATA)
        taken = [name for name in own if name in document.metadata]
        if taken:
            raise InvalidDocumentError(
                f"{taken[0]!r} is a name that passages use in their metadata: leave it out "
                f"(--no-metadata-field {taken[0]}), or rename it"
            )
        text = _HALF_CHARACTER.sub("\ufffd", document.text)
        if outline is None:
            outline = _outline_of(text) if self.kind == "markdown" else Outline()
        names = _Names(document.id)
        for piece in self._pieces(text, outline):
            yield _passage(document, outline, piece, names, by_heading=self.kind == "markdown")

    def _pieces(self, text: str, outline: Outline) -> Iterator[_Piece]:
        sections = list(outline.sections(len(text)))
        splitter = self._markdown if outline.markdown else self._plain
        if self.kind == "markdown":
            pieces = [piece for section in sections for piece in self._cut(text, section, splitter)]
            yield from pieces or self._cut(text, Section(0, len(text), ()), splitter)  # headings and no text
            return
        seen = _NUMBER.sub(r"\1,", text)
        seen = seen.translate(_LINE_BREAKS) if self.kind == "tokens" else seen
        starts = iter([*sections[1:], None])
        section, following = sections[0], next(starts)
        for piece in self._cut(seen, Section(0, len(text), ()), self._plain):
            while following is not None and following.path[-1].start <= piece.start:
                section, following = following, next(starts)
            yield replace(piece, section=section)

    def _cut(self, text: str, section: Section, splitter: _Splitter) -> Iterator[_Piece]:
        start, end = _trimmed(text, section.start, section.end)
        if start == end:
            return
        part = text[start:end]
        if self._measure(part) <= self.size:
            yield _Piece(start, end, section, 1)
            return
        for number, (offset, chunk) in enumerate(self._chunks(part, splitter), start=1):
            yield _Piece(start + offset, start + offset + len(chunk), section, number)

    def _chunks(self, part: str, splitter: _Splitter) -> Iterator[tuple[int, str]]:
        """Where each chunk begins, and the chunk; the number of a list's item is in the item's."""
        if splitter is self._plain:
            yield from splitter.chunk_indices(_NUMBER.sub(r"\1,", part))
            return
        number_start: int | None = None
        for offset, chunk in splitter.chunk_indices(part):
            start, end = offset if number_start is None else number_start, offset + len(chunk)
            number = _LAST_NUMBER.search(part, start, end)
            piece = part[start : end if number is None else number.start()].rstrip()
            if piece and number_start is None:
                yield start, piece
            elif piece:
                yield from ((start + inner, text) for inner, text in self._chunks(piece, self._plain))
            number_start = None if number is None else number.start()
        if number_start is not None:
            yield number_start, part[number_start:]


def _outline_of(text: str) -> Outline:
    with needed_for("--split markdown"):
        from tercet.ingest.texts.markdown import headings_of
    return Outline(headings_of(text), markdown=True)


class _Names:
    """Ids of a document's passages, no two of which are the same."""

    def __init__(self, document_id: str) -> None:
        self._document_id = document_id
        self._used: set[str] = set()
        self._count = 0

    def of(self, name: str | None, number: int) -> str:
        """The id of the next passage, which has this number in a section of this name."""
        self._count += 1
        suffix = str(self._count) if name is None else self._named(name, number)
        while suffix in self._used:
            number += 1
            suffix = self._named(name or str(self._count), number)
        self._used.add(suffix)
        return f"{self._document_id}#{suffix}"

    def _named(self, name: str, number: int) -> str:
        ending = "" if number == 1 else f".{number}"
        room = MAX_ID_BYTES - len(self._document_id.encode("utf-8", "replace")) - len(ending) - 1
        return name.encode()[: max(0, room)].decode("utf-8", "ignore") + ending


def _passage(
    document: Document, outline: Outline, piece: _Piece, names: _Names, *, by_heading: bool
) -> Document:
    heading = piece.section.path[-1] if piece.section.path else None
    page = outline.page(piece.start) if outline.pages else None
    anchor = heading.anchor if heading else None
    if page is not None and anchor is None:
        anchor = f"page={page}"  # which browsers open a PDF at
    name = (heading.slug if heading else anchor) or None
    fields = {
        "source": document.metadata.get(SOURCE, document.id),
        "headings": [above.title for above in piece.section.path] or None,
        "anchor": anchor,
        "start": piece.start,
        "end": piece.end,
        "page": page,
        "last_page": None if page is None else outline.page(piece.end - 1),
    }
    own = {key: value for key, value in fields.items() if value is not None}
    return Document(
        names.of(name if by_heading else None, piece.number if heading else 1),
        document.text[piece.start : piece.end],
        _title(document.title, piece.section.path),
        {**document.metadata, **own},
    )


def _title(title: str | None, path: tuple[Heading, ...]) -> str | None:
    """The document's title and the headings, without the first of them where the title says it, too."""
    names = [heading.title for heading in path]
    if title is not None:
        names = [title, *(names[1:] if path and _is_said(path[0], title) else names)]
    return BETWEEN_TITLES.join(names) or None


def _is_said(heading: Heading, title: str) -> bool:
    """Whether a title holds a heading: as it is, or among other words one that names the whole text."""
    if heading.level > 1:
        return heading.title.casefold() == title.casefold()
    return re.search(rf"(?<!\w){re.escape(heading.title)}(?!\w)", title, re.IGNORECASE) is not None


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """Without blank lines before it and blanks behind it; what its first line begins with stays."""
    end = start + len(text[start:end].rstrip())
    blank = _BLANK_BEGINNING.match(text, start, end)
    return min(end, start if blank is None else blank.end()), end
