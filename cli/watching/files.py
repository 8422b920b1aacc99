"""A folder's files as documents that say what version of which file they are of.

Beside the folder's mark a document's metadata has `source_version`: a hash of the file's bytes and of how it
is read, a slash, and how many documents the file became. So a collection itself tells which files it holds
wholly, and as they are.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path

from tercet.cli.reading.flags import as_json
from tercet.cli.watching.mark import FolderMark
from tercet.index.candidates import Document
from tercet.index.documents.metadata import FieldType
from tercet.index.errors import InvalidDocumentError
from tercet.ingest.passages.cutter import PassageCutter
from tercet.ingest.passages.measure import TokenMeasure
from tercet.ingest.sources.checks import RecordChecks, Skipped
from tercet.ingest.sources.lines import MAX_LINE_BYTES
from tercet.ingest.sources.reading import Reading
from tercet.ingest.texts.files import TextFile
from tercet.ingest.texts.parser import FileParser, require_packages
from tercet.ingest.texts.reading import COLUMNS, TextReader
from tercet.ingest.texts.record import EmptyFileError
from tercet.models.tokenizer import Tokenizer

VERSION = "source_version"
READ_AS = 2  # changes with what the same file becomes
_VERSION_BYTES = 12
_BLOCK_BYTES = 2**20


@dataclass(frozen=True, slots=True)
class FileDocuments:
    """What a file became: its documents, and what of it was left out."""

    documents: list[Document]
    skips: list[Skipped]


class FolderFiles:
    """Reads files of a folder, whose documents get its mark."""

    def __init__(
        self,
        root: Path,
        mark: FolderMark,
        reading: Reading,
        parser: FileParser,
        tokenizer: Tokenizer | None,
        fields: Mapping[str, FieldType],
    ) -> None:
        """Raises SourceError where columns are named that files do not have, or a package is missing."""
        self.root = root
        self._mark = mark
        self._columns = reading.columns.among(COLUMNS, str(root))
        self._cutter = (
            None if reading.split is None else PassageCutter(reading.split, TokenMeasure(tokenizer))
        )
        self._parser = parser
        self._reader = TextReader(parser, MAX_LINE_BYTES, reading.encoding)
        self._fields = fields
        measured = None if tokenizer is None or self._cutter is None else tokenizer.digest
        said = [
            READ_AS,
            as_json(reading, infer_fields=False),
            None if self._cutter is None else self._cutter.size,
            measured,
        ]
        self._read_as = json.dumps(said, sort_keys=True).encode()

    def hash_of(self, file: TextFile) -> str:
        """The hash of a file's bytes and of how it is read. Raises OSError."""
        hashed = blake2b(self._read_as, digest_size=_VERSION_BYTES)
        with file.path.open("rb") as opened:
            while block := opened.read(_BLOCK_BYTES):
                hashed.update(block)
        return hashed.hexdigest()

    def read(self, file: TextFile, hashed: str) -> FileDocuments:
        """The documents of a file that has this hash; none where it is empty.

        Raises InvalidDocumentError where it cannot be read, and SourceError where a package is missing.
        """
        require_packages({file.ending})
        record = self._reader.record(file)
        if isinstance(record, EmptyFileError):
            return FileDocuments([], [])
        if isinstance(record, InvalidDocumentError):
            raise record
        whole = self._columns.document(record)
        documents = [whole] if self._cutter is None else list(self._cutter.passages(whole, record.outline))
        checks = RecordChecks("skip", self._fields)
        kept = list(self._checked(documents, checks, str(file.path)))
        if record.left_out is not None:
            checks.note(str(file.path), record.left_out)
        version = version_of(hashed, len(kept))
        marks = {**self._mark.metadata(), VERSION: version}
        marked = [replace(document, metadata={**document.metadata, **marks}) for document in kept]
        return FileDocuments(marked, checks.skips)

    def rest(self) -> None:
        """Ends the process that parses, until another file needs it."""
        self._parser.close()

    def _checked(self, documents: list[Document], checks: RecordChecks, position: str) -> Iterator[Document]:
        for document in documents:
            problem = checks.problem(document, position)
            if problem is None:
                yield document
            else:
                checks.skip(position, problem)
        checks.close()


def version_of(hashed: str, documents: int) -> str:
    """The version that so many documents of a file carry."""
    return f"{hashed}/{documents}"
