"""What every document of a source must hold, and what becomes of one that does not."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal

from tercet.index.candidates import Document
from tercet.index.documents.fields import field_values
from tercet.index.documents.metadata import FieldType, value_at
from tercet.index.documents.partitions import partition_of
from tercet.index.documents.store import encode_document
from tercet.index.errors import DuplicateDocumentError, InvalidDocumentError
from tercet.ingest.errors import SourceError

OnError = Literal["stop", "skip"]
LISTED_SKIPS = 20
LONGEST_REASON = 500  # characters


@dataclass(frozen=True, slots=True)
class Skipped:
    """A record left out: where it stands, and why."""

    position: str
    reason: str

    def __str__(self) -> str:
        return f"{self.position}: {self.reason}"


class RecordChecks:
    """The checks of one source, whose ids must differ. `skipped` counts the records left out, `skips` lists
    the first of them, and what was left out of others.

    fields: the collection's declared fields, whose values must have the declared type; guessed: those of
    which `ingest/sources/inference.py` found it; partitioned: whether each document is to have a partition.
    """

    def __init__(
        self,
        on_error: OnError,
        fields: Mapping[str, FieldType],
        guessed: Collection[str] = (),
        *,
        partitioned: bool = False,
    ) -> None:
        self.skipped = 0
        self.skips: list[Skipped] = []
        self._on_error = on_error
        self._fields = fields
        self._guessed = guessed
        self._partitioned = partitioned
        self._seen: _SeenIds | None = None

    def problem(self, document: Document, position: str) -> Exception | None:
        """Why the index would not take a document; None where it would. An id counts as seen then."""
        if self._seen is None:
            self._seen = _SeenIds()
        try:
            encode_document(document)
            if self._partitioned:
                partition_of(document)
            for name, kind in self._fields.items():
                self._check_field(name, kind, document)
            self._seen.add(document.id, position)
        except (InvalidDocumentError, DuplicateDocumentError) as error:
            return error
        return None

    def _check_field(self, name: str, kind: FieldType, document: Document) -> None:
        try:
            field_values(name, kind, value_at(document.metadata, name))
        except InvalidDocumentError as error:
            if name not in self._guessed:
                raise
            raise InvalidDocumentError(
                f"{error}. The first documents are all {kind} there, which is what --infer-fields went by: "
                f"say what it is with --field {name}:TYPE"
            ) from error

    def skip(self, position: str, problem: Exception, *, harmless: bool = False) -> None:
        """Leaves a record out. Raises SourceError or DuplicateDocumentError where it ends the build.

        harmless: it never does, since nothing is lost.
        """
        if self._on_error == "stop" and not harmless:
            message = (
                f"{position}: {problem}. Correct it, or skip bad records "
                '(--on-error skip, or "on_error": "skip" of a job).'
            )
            kind = DuplicateDocumentError if isinstance(problem, DuplicateDocumentError) else SourceError
            raise kind(message)
        self.skipped += 1
        if len(self.skips) < LISTED_SKIPS:
            self.skips.append(Skipped(position, str(problem)[:LONGEST_REASON]))

    def left_out(self, position: str, name: str, records: int) -> None:
        """Lists a part of records, called so, that JSON has nothing for."""
        of = f"{records:,} document" if records == 1 else f"{records:,} documents"
        self.note(position, f"{name!r:.200} of {of}: JSON has nothing for its type; make it text to keep it")

    def note(self, position: str, reason: str) -> None:
        """Lists what is left out of a record that is kept."""
        self.skips.append(Skipped(position, reason))

    def close(self) -> None:
        """Forgets the ids."""
        if self._seen is not None:
            self._seen.close()
            self._seen = None


class _SeenIds:
    """The ids read so far with their positions, in a temporary database that spills to disk when large."""

    def __init__(self) -> None:
        self._database = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._database.execute("PRAGMA journal_mode = OFF")
        self._database.execute("BEGIN")
        self._database.execute("CREATE TABLE seen (id TEXT PRIMARY KEY, position TEXT) WITHOUT ROWID")

    def add(self, document_id: str, position: str) -> None:
        """Raises DuplicateDocumentError where the id was there before."""
        try:
            self._database.execute("INSERT INTO seen VALUES (?, ?)", (document_id, position))
        except sqlite3.IntegrityError as error:
            where = self._database.execute("SELECT position FROM seen WHERE id = ?", (document_id,))
            raise DuplicateDocumentError(
                f"the id {document_id!r} occurs already at {where.fetchone()[0]}"
            ) from error

    def close(self) -> None:
        self._database.close()
