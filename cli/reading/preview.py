"""What is said of a source: its columns, its fields, its first documents."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from tercet.cli.batches import document_record
from tercet.cli.output import console, counted, error_console, print_json, print_pairs

if TYPE_CHECKING:
    from tercet.cli.sources import GivenSources
    from tercet.index.documents.metadata import FieldType
    from tercet.ingest.sources.checks import OnError, Skipped
    from tercet.ingest.sources.reading import Reading
    from tercet.models.tokenizer import Tokenizer

SHOWN_DOCUMENTS = 3
SHOWN_CHARACTERS = 1000


def say_columns(given: GivenSources, reading: Reading) -> None:
    """Says of each source in one line what is read as what, where that is not what our own files have."""
    from tercet.ingest.sources.reader import DocumentReader

    whole = replace(reading, split=None)  # how it is cut depends on an encoder
    for source in given.paths:
        reader = DocumentReader(source, on_error="skip", reading=whole)
        next(iter(reader), None)
        if not reader.usual or _shown(reader.encoding, reading):
            said = given.said(f"{reader.files[0]}{_shown(reader.encoding, reading)}: {reader.described}")
            error_console().print(said, markup=False, soft_wrap=True)


def inferred_as_said(
    given: GivenSources, reading: Reading, declared: Mapping[str, FieldType] | None
) -> tuple[dict[str, FieldType], str | None]:
    """The types of other fields than those declared, found in the sources; and what is to be said of it, None
    where no document could be read.
    """
    from tercet.ingest.sources.inference import inferred_fields

    inferred = inferred_fields(given.paths, replace(reading, split=None), declared)
    if not inferred.documents:  # what is wrong with the source is told as it is read
        return inferred.fields, None
    fields = ", ".join(f"{name}:{kind}" for name, kind in inferred.fields.items()) or "none"
    others = f"; no fields: {', '.join(inferred.others)}"[:SHOWN_CHARACTERS] if inferred.others else ""
    return inferred.fields, (
        f"fields as found in the first {counted(inferred.documents, 'document')}: {fields}{others}"
    )


def _shown(encoding: str | None, reading: Reading) -> str:
    """An encoding that was found or given, other than UTF-8, and whether it may be another."""
    from tercet.ingest.sources.encodings import ENCODINGS

    if encoding is None or encoding.startswith("utf-8"):
        return ""
    likeliest = reading.encoding is None and encoding in ENCODINGS
    return f" (likeliest {encoding}; --encoding says another)" if likeliest else f" ({encoding})"


def show_sources(
    given: GivenSources,
    reading: Reading,
    on_error: OnError,
    fields: Mapping[str, FieldType],
    tokenizer: Tokenizer | None,
    command: Sequence[str],
) -> None:
    """Prints what would be read: files, columns, and the first documents, each as a line of JSON. Of columns
    that are not known it shows all, with samples, and the command that would work, made of `command`.

    Raises SourceError as the build would: for a bad record, and for sources without documents.
    """
    from tercet.ingest.errors import SourceError
    from tercet.ingest.sources.reader import DocumentReader, no_documents

    wanted, skipped, skips = SHOWN_DOCUMENTS, 0, list["Skipped"]()
    for source in given.paths:
        reader = DocumentReader(
            source, on_error=on_error, fields=fields, reading=reading, tokenizer=tokenizer
        )
        try:
            first = list(islice(reader, max(1, wanted)))
        except SourceError:
            _show_columns(source, reading, command)
            raise
        skipped, skips = skipped + reader.skipped, skips + reader.skips
        files = f"{len(reader.files):,} files of {source}" if len(reader.files) > 1 else str(reader.files[0])
        known = "" if reader.total is None else f", {counted(reader.total, 'document')}"
        said = given.said(f"{files}{known}{_shown(reader.encoding, reading)}: {reader.described}")
        console().print(said, markup=False, soft_wrap=True)
        for document in first[:wanted]:
            print_json(document_record(document))
        wanted = max(0, wanted - len(first))
        given.print_skips(reader.skips)
    if wanted == SHOWN_DOCUMENTS:
        raise no_documents(given.paths, skipped, skips)


def _show_columns(source: Path, reading: Reading, command: Sequence[str]) -> None:
    """Prints columns with samples, and a command that names what is not known; nothing where all is known."""
    from tercet.ingest.sources.preview import preview

    seen = preview(source, reading, {}, None)
    texts = {
        column.name: max(map(len, column.samples))
        for column in seen.columns
        if column.samples and all(isinstance(sample, str) for sample in column.samples)
    }
    flags = [] if seen.text or not texts else ["--text-field", max(texts, key=texts.__getitem__)]
    flags += [] if seen.id or reading.columns.generate_ids else ["--generate-ids"]
    if not flags:
        return
    print_pairs({column.name: str(column.samples)[1:-1] for column in seen.columns}, console())
    console().print(f"This would work: {shlex.join([*command, *flags])}", markup=False, soft_wrap=True)
