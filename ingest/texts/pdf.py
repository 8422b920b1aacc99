"""PDF as text, page by page."""

from __future__ import annotations

import re
from pathlib import Path

import pypdfium2

from tercet.ingest.passages.outline import Outline
from tercet.ingest.texts.parsed import ParsedText, UnreadableFileError

BETWEEN_PAGES = "\n\n"
_HYPHEN_AT_LINE_END = re.compile(r"[\x02\ufffe]\s*")  # as PDFium marks it
_NO_TEXT = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ufffe\uffff]")


def parse_pdf(path: Path, most_characters: int) -> ParsedText:
    """The text of a file, its title, and `pages` in its metadata.

    Raises UnreadableFileError where it is damaged, locked, longer than so many characters or without text.
    """
    try:
        document = pypdfium2.PdfDocument(path)
    except pypdfium2.PdfiumError as error:
        why = "it needs a password" if "password" in str(error).lower() else f"no readable PDF ({error})"
        raise UnreadableFileError(why) from error
    parts, pages, length = [], [], 0
    for number in range(len(document)):
        text = _page_text(document, number)
        pages.append(length)
        parts.append(text)
        length += len(text) + len(BETWEEN_PAGES)
        if length > most_characters:
            raise UnreadableFileError(f"longer than {most_characters} characters, the limit for one document")
    if not any(parts):
        raise UnreadableFileError(
            f"none of its {len(parts)} pages has text: if they are pictures, have their text recognized (OCR)"
        )
    title = _NO_TEXT.sub("", document.get_metadata_value("Title")).strip() or None
    return ParsedText(BETWEEN_PAGES.join(parts), title, {"pages": len(parts)}, Outline(pages=tuple(pages)))


def _page_text(document: pypdfium2.PdfDocument, number: int) -> str:
    """Raises UnreadableFileError where the page is damaged."""
    try:
        page = document[number]
        text: str = page.get_textpage().get_text_bounded()
        page.close()
    except pypdfium2.PdfiumError as error:
        raise UnreadableFileError(f"page {number + 1} cannot be read ({error})") from error
    lines = _NO_TEXT.sub("", _HYPHEN_AT_LINE_END.sub("", text).replace("\r\n", "\n").replace("\r", "\n"))
    return "\n".join(line.rstrip() for line in lines.split("\n")).strip()
