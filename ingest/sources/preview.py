"""What a file holds at its beginning: its columns, what they seem to be, and its first documents."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from tercet.index.candidates import Document
from tercet.index.documents.metadata import FieldType
from tercet.index.errors import DuplicateDocumentError
from tercet.ingest.document_bytes import value_bytes
from tercet.ingest.errors import SourceError
from tercet.ingest.passages.split import SOURCE_FIELD
from tercet.ingest.sources.columns import METADATA
from tercet.ingest.sources.delimited import DelimitedRows
from tercet.ingest.sources.files import Records, holds_texts, open_records, source_files
from tercet.ingest.sources.inference import inferred_fields
from tercet.ingest.sources.lines import MAX_LINE_BYTES
from tercet.ingest.sources.reader import LOOKED_AT, DocumentReader
from tercet.ingest.sources.reading import Reading
from tercet.ingest.sources.usual_names import IDS, TEXTS, TITLES, usual_names
from tercet.models.tokenizer import Tokenizer

SHOWN_DOCUMENTS = 3
SAMPLES = 3
SAMPLE_CHARACTERS = 200
SAMPLED_BYTES = 2**26  # of records: more than one has


@dataclass(frozen=True, slots=True)
class PreviewedColumn:
    """A column, or an entry of the objects in a column `metadata`, and its first values.

    type: of the field that it may be, None where it is none.
    """

    name: str
    samples: list[Any]
    type: FieldType | None


@dataclass(frozen=True, slots=True)
class Preview:
    """The beginning of a source.

    text, title, id: the columns that hold these, None for none; encoding, delimiter: of text tables;
    skipped: records left out before the last of the documents, skips: why; problem: why there are no
    documents, where that is so.
    """

    columns: list[PreviewedColumn]
    text: str | None
    title: str | None
    id: str | None
    encoding: str | None
    delimiter: str | None
    documents: list[Document]
    skipped: int = 0
    skips: tuple[str, ...] = ()
    problem: str | None = None


def preview(
    source: Path, reading: Reading, fields: Mapping[str, FieldType], tokenizer: Tokenizer | None
) -> Preview:
    """Looks at the beginning of a source. fields: those that are declared; tokenizer: measures passages.

    Raises SourceError for what cannot be read. Unclear columns are no error: they are the preview's problem.
    """
    path = source_files(source, reading.format)[0]
    part = open_records(path, MAX_LINE_BYTES, {}, reading)
    samples = _samples(part)
    names = list(samples)
    choice = reading.columns
    reader = DocumentReader(source, on_error="skip", fields=fields, reading=reading, tokenizer=tokenizer)
    documents, types = list[Document](), dict[str, FieldType]()
    problem: str | None = None
    text: str | None
    try:
        with closing(iter(reader)) as records:
            documents = list(islice(records, SHOWN_DOCUMENTS))
        if not documents:
            problem = str(reader.no_documents())
        text, title, own = reader.columns.text, reader.columns.title, reader.columns.id
        types = inferred_fields(source, replace(reading, split=None)).fields
        if reading.split is not None or holds_texts(path, reading.format):
            types |= SOURCE_FIELD
    except (SourceError, DuplicateDocumentError) as error:
        problem = str(error)
        text = choice.text or next(iter(usual_names(names, TEXTS)), None)
        title = choice.title or next(iter(usual_names(names, TITLES)), None)
        own = None if choice.generate_ids else choice.id or next(iter(usual_names(names, IDS)), None)
    return Preview(
        [PreviewedColumn(name, values, types.get(name)) for name, values in samples.items()],
        text,
        title,
        own,
        part.encoding,
        part.delimiter if isinstance(part, DelimitedRows) else None,
        documents,
        reader.skipped,
        tuple(map(str, reader.skips)),
        problem,
    )


def _samples(part: Records) -> dict[str, list[Any]]:
    """The first values under each name, in the order of the file."""
    by_name: dict[str, list[Any]] = {name: [] for name in part.names or ()}
    size = 0
    for _, record in islice(part, LOOKED_AT):
        size += value_bytes(record)
        if size > SAMPLED_BYTES:
            break
        if not isinstance(record, Mapping):
            continue
        inside = record.get(METADATA)
        for name, value in [*record.items(), *(inside.items() if isinstance(inside, Mapping) else ())]:
            if name == METADATA and isinstance(value, Mapping):
                continue
            samples = by_name.setdefault(name, [])
            if value is not None and len(samples) < SAMPLES:
                samples.append(value[:SAMPLE_CHARACTERS] if isinstance(value, str) else value)
    if METADATA in by_name and not by_name[METADATA]:
        del by_name[METADATA]
    return by_name
