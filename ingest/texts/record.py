"""The record of a file of text, and why there may be none without any loss."""

from __future__ import annotations

from typing import Any

from tercet.index.errors import InvalidDocumentError
from tercet.ingest.passages.outline import Outline


class TextRecord(dict[str, Any]):
    """A record that knows the outline of its text.

    left_out: what of the file is not in the text though it is to be read, for the report.
    """

    outline = Outline()
    left_out: str | None = None


class LeftOutError(InvalidDocumentError):
    """A file or folder that is none of a source; nothing is lost by that."""


class EmptyFileError(LeftOutError):
    """There is nothing in a file but blanks."""
