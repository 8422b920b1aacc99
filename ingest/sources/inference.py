"""Types of the fields of a new collection, found in the first documents of its source.

| the values are | the field is |
|---|---|
| true and false | `boolean` |
| whole numbers, written without a point | `integer` |
| numbers | `number` |
| moments, as `2024-05-17` or `2024-05-17 09:30:00` | `datetime` |
| other texts, short or of few different ones | `keyword` |

Lists of all but booleans are as their values.

Cells of CSV and names of folders count as what they may be read as, but for numbers that begin with a zero,
such as postal codes. What fits nothing of these, and long texts that hardly repeat, is no field.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal

from tercet.index.candidates import Document
from tercet.index.catalog.names import is_field_name
from tercet.index.catalog.settings import MAX_FIELDS
from tercet.index.documents.datetimes import microseconds_of
from tercet.index.documents.fields import MAX_KEYWORD_BYTES
from tercet.index.documents.metadata import FieldType
from tercet.index.documents.numbers import EXACT, INT64
from tercet.ingest.sources.files import Source, paths_of
from tercet.ingest.sources.reader import DocumentReader
from tercet.ingest.sources.reading import Reading

SAMPLE_DOCUMENTS = 10_000
SAMPLE_CHARACTERS = 2**26
SHORT_CHARACTERS = 32  # on average, of keywords of which each document may have another
REPEATED = 10  # times that each of longer keywords is there, on average
COUNTED_TEXTS = 10_000
_WHOLE = re.compile(r"[+-]?(0|[1-9][0-9]{0,18})", re.ASCII)
_NUMBER = re.compile(r"[+-]?(0|[1-9][0-9]*)?(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?", re.ASCII)
_BOOLEANS = ("true", "false")

_Seen = Literal["boolean", "integer", "number", "datetime", "text", "other"]


@dataclass(frozen=True, slots=True)
class InferredFields:
    """fields: the types found; others: names of metadata that are no fields; documents: of the sample."""

    fields: dict[str, FieldType]
    others: list[str]
    documents: int


def inferred_fields(
    source: Source, reading: Reading, declared: Mapping[str, FieldType] | None = None
) -> InferredFields:
    """The types of fields besides those declared, of the first documents of each file or folder of a source.

    Bad records tell nothing. Raises SourceError as reading does.
    """
    paths, seen, documents = paths_of(source), _Columns(), 0
    for path in paths:
        reader = DocumentReader(path, on_error="skip", fields=declared, reading=reading)
        characters = 0
        for document in islice(reader, max(1, SAMPLE_DOCUMENTS // len(paths))):
            seen.add(document, reader)
            documents += 1
            characters += len(document.text)
            if characters > SAMPLE_CHARACTERS:
                break
        for name, values in reader.partitions.items():
            if name in seen.columns:  # all of them are known, whichever were read
                seen.columns[name].add_all(values)
    fields: dict[str, FieldType] = {}
    others = []
    for name, column in seen.columns.items():
        if name in (declared or {}):
            continue
        kind = column.kind() if is_field_name(name) else None
        if kind is None or len(fields) + len(declared or {}) == MAX_FIELDS:
            others.append(name)
        else:
            fields[name] = kind
    return InferredFields(fields, others, documents)


class _Columns:
    def __init__(self) -> None:
        self.columns: dict[str, _Column] = {}

    def add(self, document: Document, reader: DocumentReader) -> None:
        for name, value in document.metadata.items():
            if value is not None:
                self.columns.setdefault(name, _Column()).add(value, cell=reader.is_cell(name))


@dataclass(slots=True)
class _Column:
    """What was seen of the values of one name. texts: different ones, as far as they are counted."""

    seen: set[_Seen] = field(default_factory=set)
    only_texts: bool = True
    rounded: bool = False
    values: int = 0
    characters: int = 0
    longest_bytes: int = 0
    texts: set[str] = field(default_factory=set)

    def add_all(self, cells: Iterable[str]) -> None:
        for cell in cells:
            self.add(cell, cell=True)

    def add(self, value: Any, *, cell: bool = False) -> None:
        if isinstance(value, list) and not any(isinstance(member, list | bool) for member in value):
            for member in value:
                self.add(member)
            return
        self.seen.add(_seen(value, cell=cell))
        if isinstance(value, str):
            self._count(value)
        else:
            self.only_texts = False
            self.rounded |= isinstance(value, int) and abs(value) > EXACT

    def kind(self) -> FieldType | None:
        """The type that holds all values; None where there is none, or they are no keywords."""
        for kinds, kind in _KINDS:
            if self.seen and self.seen <= kinds and not (kind == "number" and self.rounded):
                return kind
        return "keyword" if self.only_texts and self._are_keywords() else None

    def _count(self, text: str) -> None:
        self.values += 1
        self.characters += len(text)
        self.longest_bytes = max(self.longest_bytes, len(text.encode("utf-8", "surrogatepass")))
        if len(self.texts) < COUNTED_TEXTS and len(text) <= MAX_KEYWORD_BYTES:
            self.texts.add(text)

    def _are_keywords(self) -> bool:
        if not self.values or self.longest_bytes > MAX_KEYWORD_BYTES:
            return False
        short = self.characters <= SHORT_CHARACTERS * self.values
        return short or len(self.texts) * REPEATED <= self.values


_KINDS: list[tuple[set[_Seen], FieldType]] = [
    ({"boolean"}, "boolean"),
    ({"integer"}, "integer"),
    ({"integer", "number"}, "number"),
    ({"datetime"}, "datetime"),
]


def _seen(value: Any, *, cell: bool) -> _Seen:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, float):
        return "number"
    if isinstance(value, int):
        return "integer" if INT64[0] <= value <= INT64[1] else "other"
    return _seen_text(value.strip() if cell else value, cell=cell) if isinstance(value, str) else "other"


def _seen_text(text: str, *, cell: bool) -> _Seen:
    if cell and text.lower() in _BOOLEANS:
        return "boolean"
    if cell and _WHOLE.fullmatch(text):
        return "integer" if INT64[0] <= int(text) <= INT64[1] else "text"
    if cell and text[-1:].isdigit() and _NUMBER.fullmatch(text):
        return "number" if math.isfinite(float(text)) else "text"
    try:
        microseconds_of(text)
    except ValueError:
        return "text"
    return "datetime"
