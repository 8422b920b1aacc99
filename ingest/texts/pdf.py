"""PDF as text, page by page."""

from __future__ import annotations

import re
from itertools import accumulate
from pathlib import Path

import pypdfium2

from tercet.ingest.passages.outline import Outline
from tercet.ingest.texts.parsed import ParsedText, UnreadableFileError
from tercet.ingest.texts.pdf_lines import Box, Line, PageCharacters
from tercet.ingest.texts.pdf_order import page_lines, without_running

BETWEEN_PAGES = "\n\n"
NO_MAP = "of a font that does not say which they are: print the file anew, or have its text recognized (OCR)"
FEW = 0.01  # of a file's characters, such as marks of lists, which nobody misses
_HYPHEN_AT_LINE_END = re.compile(r"[\x02\ufffe]\s*")  # as PDFium marks it
# What programs call a file that nobody named, or put around its name.
_OF_PROGRAM = re.compile(
    r"^Microsoft (?:Word|PowerPoint|Excel) - |(?<=\w)\.(?:docx?|pptx?|xlsx?|odt|rtf|tex|dvi|indd)$"
    r"|^(?:untitled(?:[ -]?\d+)?|PowerPoint Presentation|Slide \d+|Document\d*)$",
    re.IGNORECASE,
)
_NO_TEXT = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ufffe\uffff]")


def parse_pdf(path: Path, most_characters: int) -> ParsedText:
    """The text of a file without running heads and feet, its title, and `pages` in its metadata.

    Raises UnreadableFileError where it is damaged, locked, longer than so many characters or without text.
    """
    try:
        document = pypdfium2.PdfDocument(path)
    except pypdfium2.PdfiumError as error:
        why = "it needs a password" if "password" in str(error).lower() else f"no readable PDF ({error})"
        raise UnreadableFileError(why) from error
    read, unmapped, length = [], 0, 0
    for number in range(len(document)):
        lines, odd = _page(document, number)
        read.append(lines)
        unmapped += odd
        length += sum(len(line.text) + 1 for line in lines)
        if length > most_characters:
            raise UnreadableFileError(f"longer than {most_characters} characters, the limit for one document")
    parts = [_text(lines) for lines in without_running(read)]
    if not any(parts):
        raise UnreadableFileError(_no_text(len(parts), unmapped))
    starts = accumulate((len(part) + len(BETWEEN_PAGES) for part in parts[:-1]), initial=0)
    title = _NO_TEXT.sub("", document.get_metadata_value("Title")).strip()
    return ParsedText(
        BETWEEN_PAGES.join(parts),
        _OF_PROGRAM.sub("", title) or None,
        {"pages": len(parts)},
        Outline(pages=tuple(starts)),
        f"left out: {unmapped:,} characters, {NO_MAP}" if unmapped > FEW * length else None,
    )


def _no_text(pages: int, unmapped: int) -> str:
    if unmapped:
        return f"none of its {pages} pages has text that can be read: {unmapped:,} characters, {NO_MAP}"
    return f"none of its {pages} pages has text: if they are pictures, have their text recognized (OCR)"


def _page(document: pypdfium2.PdfDocument, number: int) -> tuple[list[Line], int]:
    """The lines of a page, and how many of its characters are unknown.

    Raises UnreadableFileError where it is damaged.
    """
    try:
        page = document[number]
        characters = PageCharacters(page.get_textpage())
        seen = Box(*page.get_bbox())
        lines = [line for line in page_lines(characters) if line.box.meets(seen)]
        page.close()
    except pypdfium2.PdfiumError as error:
        raise UnreadableFileError(f"page {number + 1} cannot be read ({error})") from error
    return lines, characters.unmapped


def _text(lines: list[Line]) -> str:
    """The text of a page, without hyphens at the ends of lines."""
    text = _HYPHEN_AT_LINE_END.sub("", "\n".join(line.text for line in lines))
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # halves of one character
    return _NO_TEXT.sub("", whole).strip()
