"""Documents from JSONL (also .gz), Parquet or a BEIR folder, streamed in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

from index.candidates import Document
from index.documents.fields import FieldType
from index.errors import InvalidDocumentError
from ingest.errors import SourceError
from ingest.sources.checks import OnError, RecordChecks, Skipped
from ingest.sources.lines import MAX_LINE_BYTES, LineFile
from ingest.sources.records import document_from_json

SUFFIXES = (".jsonl", ".jsonl.gz", ".ndjson", ".ndjson.gz", ".parquet")

Parsed = tuple[int, Document | InvalidDocumentError]


class DocumentReader:
    """Iterates once over a source's documents, in order, each such that the index accepts it.

    fields: the collection's declared fields, whose values must have the declared type.
    `skipped` counts the records left out; `skips` lists the first of them, and what was left out of others.
    """

    def __init__(
        self,
        source: Path,
        *,
        on_error: OnError = "stop",
        fields: Mapping[str, FieldType] | None = None,
        line_bytes: int = MAX_LINE_BYTES,
    ) -> None:
        self.files = source_files(source)
        self._checks = RecordChecks(on_error, fields or {})
        self._parts = [_open_part(path, line_bytes) for path in self.files]
        counts = [part.count() for part in self._parts]
        self._records = None if None in counts else sum(count for count in counts if count is not None)

    @property
    def skipped(self) -> int:
        return self._checks.skipped

    @property
    def skips(self) -> list[Skipped]:
        return self._checks.skips

    @property
    def total(self) -> int | None:
        """Documents in the whole source, as far as known; None where only reading it all would tell."""
        if self._records is None:
            return None
        return self._records - self.skipped - sum(part.blank for part in self._parts)

    @property
    def fraction(self) -> float:
        """Share of the source read so far, from 0 to 1."""
        return sum(part.fraction for part in self._parts) / len(self._parts)

    def __iter__(self) -> Iterator[Document]:
        """Raises SourceError or DuplicateDocumentError at a bad record, unless those are skipped."""
        with closing(self._checks) as checks:
            for path, part in zip(self.files, self._parts, strict=True):
                for number, item in part:
                    position = f"{path} {part.unit} {number}"
                    problem = item if isinstance(item, Exception) else checks.problem(item, position)
                    if problem is None and isinstance(item, Document):
                        yield item
                    elif problem is not None:
                        checks.skip(position, problem)
                for name, rows in part.left_out.items():
                    checks.left_out(str(path), name, rows)


def read_documents(source: Path, *, on_error: OnError = "stop") -> DocumentReader:
    """Documents of a JSONL or Parquet file, or of a folder with a corpus; see DocumentReader."""
    return DocumentReader(source, on_error=on_error)


def source_files(source: Path) -> list[Path]:
    """The files that hold a source's documents.

    A folder holds `corpus.jsonl`, `corpus.jsonl.gz` or `corpus.parquet` (BEIR), or else Parquet parts,
    taken in order of name. Raises SourceError where there is none.
    """
    if source.is_dir():
        for suffix in SUFFIXES:
            corpus = source / f"corpus{suffix}"
            if corpus.is_file():
                return [corpus]
        parts = sorted(path for path in source.glob("*.parquet") if path.is_file())
        if not parts:
            raise SourceError(
                f"{source}: the folder holds neither corpus.jsonl, corpus.jsonl.gz nor Parquet files. "
                "Give a BEIR folder, a folder of Parquet parts, or a file."
            )
        return parts
    if not source.exists():
        raise SourceError(f"{source}: no such file or folder")
    if not source.is_file():
        raise SourceError(f"{source}: neither a file nor a folder")
    if not source.name.endswith(SUFFIXES):
        raise SourceError(f"{source}: unknown kind of file; the name must end in {', '.join(SUFFIXES)}")
    return [source]


class _JsonLines:
    """The documents of a JSONL file, by line."""

    unit = "line"

    def __init__(self, path: Path, line_bytes: int) -> None:
        self.blank = 0
        self.left_out: Mapping[str, int] = {}
        self._lines = LineFile(path, line_bytes)

    @property
    def fraction(self) -> float:
        return self._lines.fraction

    def count(self) -> int | None:
        return self._lines.count()

    def __iter__(self) -> Iterator[Parsed]:
        for number, line in self._lines:
            if line is None:
                limit = self._lines.limit_bytes
                yield number, InvalidDocumentError(f"longer than {limit} bytes, the limit for one document")
                continue
            stripped = (line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line).strip()
            if not stripped:
                self.blank += 1
                continue
            try:
                yield number, document_from_json(stripped)
            except InvalidDocumentError as error:
                yield number, error


class _ParquetDocuments:
    """The documents of a Parquet file, by row."""

    unit = "row"
    blank = 0

    def __init__(self, path: Path, row_bytes: int) -> None:
        try:
            from ingest.sources.parquet import ParquetRows  # pyarrow is large, slow to load and seldom needed
        except ImportError as error:
            raise SourceError(
                f"{path}: Parquet needs pyarrow ({error}): pip install -c constraints.txt -e '.[cpu,parquet]'"
            ) from error
        self._rows = ParquetRows(path, row_bytes)

    @property
    def fraction(self) -> float:
        return self._rows.fraction

    @property
    def left_out(self) -> Mapping[str, int]:
        """Columns and fields that JSON has nothing for, and of how many rows they were."""
        return self._rows.left_out

    def count(self) -> int | None:
        return self._rows.count()

    def __iter__(self) -> Iterator[Parsed]:
        for number, row in self._rows:
            try:
                yield number, row if isinstance(row, InvalidDocumentError) else document_from_json(row)
            except InvalidDocumentError as error:
                yield number, error


def _open_part(path: Path, limit_bytes: int) -> _JsonLines | _ParquetDocuments:
    return (_ParquetDocuments if path.suffix == ".parquet" else _JsonLines)(path, limit_bytes)
