"""The kinds of files that are read, and what somebody may say that a file is. This loads nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

FileFormat = Literal["jsonl", "json", "csv", "tsv", "parquet", "arrow", "markdown", "html", "pdf", "text"]
"""What a file is, whatever its name ends in."""
RECORDS_EXAMPLE = "data.paragraphs"


@dataclass(frozen=True, slots=True)
class FileKind:
    """A kind of file that holds documents.

    name: what people call it; endings: of names, in lower case, the usual one first; text: whether a file is
    one document, not many records; lines: whether its beginning can be read without the rest; packed: whether
    it may be packed as a whole; headings: whether a text has headings to be cut at.
    """

    name: str
    endings: tuple[str, ...]
    text: bool = False
    lines: bool = False
    packed: bool = False
    headings: bool = False


KINDS: Mapping[str, FileKind] = {
    "csv": FileKind("CSV", (".csv",), lines=True, packed=True),
    "tsv": FileKind("TSV", (".tsv", ".tab"), lines=True, packed=True),
    "jsonl": FileKind("JSONL", (".jsonl", ".ndjson"), lines=True, packed=True),
    "json": FileKind("JSON", (".json",), packed=True),
    "parquet": FileKind("Parquet", (".parquet",)),
    "arrow": FileKind("Arrow", (".arrow", ".arrows", ".feather", ".ipc")),
    "markdown": FileKind("Markdown", (".md", ".markdown", ".mdx"), text=True, headings=True),
    "text": FileKind("TXT", (".txt", ".text"), text=True),
    "rst": FileKind("reStructuredText", (".rst",), text=True, headings=True),
    "html": FileKind("HTML", (".html", ".htm"), text=True, headings=True),
    "pdf": FileKind("PDF", (".pdf",), text=True),
}
"""By format, or for one that nobody may say by a name of its own."""
ENDINGS: Mapping[FileFormat, str] = {format: KINDS[format].endings[0] for format in get_args(FileFormat)}
"""The ending that a file of a format is read as."""


def record_keys(path: str) -> tuple[str, ...]:
    """The keys of a path with dots between. Raises ValueError where one is empty."""
    keys = tuple(path.split("."))
    if not all(keys):
        raise ValueError(f"{path!r:.80} is no path such as {RECORDS_EXAMPLE}")
    return keys
