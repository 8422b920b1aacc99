"""What is encoded of a document: the whole of it, or windows of its text, each after the title."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tercet.index.candidates import Document, Window
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.windows.store import DocumentWindows
from tercet.ingest.errors import SourceError
from tercet.models.errors import TextTooLongError
from tercet.models.texts.windows import Span, WindowCutter
from tercet.models.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class EncodedText:
    """A document, or one of its windows, as the encoder sees it.

    start, end: the part of the document's text that it holds, in characters; last: whether it ends the
    document.
    """

    document: Document
    text: str
    start: int
    end: int
    last: bool


def cutter_for(settings: CollectionSettings, tokenizer: Tokenizer) -> WindowCutter | None:
    """What cuts a collection's documents; None where they are encoded whole.

    Raises UnsupportedWindowError where the encoder does not take its windows.
    """
    window = settings.window
    return None if window is None else WindowCutter.of(tokenizer, window.tokens, window.overlap)


def encoded_texts(document: Document, cutter: WindowCutter | None) -> Iterator[EncodedText]:
    """The windows of a document, in order, or the document as it is where nothing cuts it.

    Raises SourceError where a character of it has more tokens than a window.
    """
    if cutter is None:
        yield EncodedText(document, document.encoded_text, 0, len(document.text), last=True)
        return
    head, text, shift = document.head, document.text, 0
    if not cutter.takes(head):  # a title as long as a window is cut like text
        head, text, shift = "", document.encoded_text, len(head)

    def encoded(span: Span, *, last: bool) -> EncodedText:
        start, end = span
        part = cutter.joined(head, text[start:end])
        return EncodedText(document, part, max(0, start - shift), max(0, end - shift), last)

    try:
        spans = cutter.cut(text, head)
        previous = next(spans)
        for span in spans:
            yield encoded(previous, last=False)
            previous = span
        yield encoded(previous, last=True)
    except TextTooLongError as error:
        raise SourceError(f"document {document.id!r:.80}: {error}") from error


def windows_of(texts: Sequence[EncodedText]) -> tuple[list[Document], DocumentWindows]:
    """Consecutive texts as documents, each once, and their windows."""
    begins = [row for row, text in enumerate(texts) if row == 0 or texts[row - 1].last]
    windows = DocumentWindows(
        np.array([*begins, len(texts)], np.int64),
        np.array([(text.start, text.end) for text in texts], np.int64).reshape(-1, 2),
        continues=not texts[-1].last,
    )
    return [texts[row].document for row in begins], windows


def text_of_window(document: Document, window: Window, cutter: WindowCutter) -> str | None:
    """What was encoded of a window; None where the document's title is too long to tell."""
    if window == Window(0, 0, len(document.text)):
        return document.encoded_text
    if not cutter.takes(document.head):
        return None
    return cutter.joined(document.head, document.text[window.start : window.end])
