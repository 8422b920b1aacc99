"""What a file of text is once it is parsed."""

from __future__ import annotations

from dataclasses import astuple, dataclass, field
from typing import Any

from tercet.ingest.passages.outline import Heading, Outline


class UnreadableFileError(Exception):
    """Why a file has no text that can be read; the message goes on after the file's name and a colon."""


@dataclass(frozen=True, slots=True)
class ParsedText:
    """A file's text, its title where it has one, metadata of its own, and the outline of the text.

    left_out: what of the file is not in the text though it is to be read, for the report.
    """

    text: str
    title: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    outline: Outline = field(default_factory=Outline)
    left_out: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The parsed text as one process hands it to another."""
        return {
            "text": self.text,
            "title": self.title,
            "metadata": self.metadata,
            "headings": [astuple(heading) for heading in self.outline.headings],
            "pages": self.outline.pages,
            "left_out": self.left_out,
        }

    @staticmethod
    def from_json(record: dict[str, Any]) -> ParsedText:
        """What `to_json` gave of a text that is no Markdown."""
        headings = tuple(Heading(*heading) for heading in record["headings"])
        outline = Outline(headings, tuple(record["pages"]))
        return ParsedText(record["text"], record["title"], record["metadata"], outline, record["left_out"])
