"""Rows of CSV and TSV files, whose first row names the columns; encoding and delimiter are found or given."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, TextIO

import orjson

from tercet.index.documents.json_values import loads
from tercet.index.documents.metadata import FieldType
from tercet.index.errors import InvalidDocumentError
from tercet.ingest.errors import SourceError
from tercet.ingest.sources.cells import cell_value
from tercet.ingest.sources.columns import METADATA
from tercet.ingest.sources.encodings import SAMPLE_BYTES, detected_encoding, encoding_of
from tercet.ingest.sources.packed import PackedFile
from tercet.ingest.sources.unclear_columns import seem_values, shown_columns

DELIMITERS = ",;\t|"
FIRST_ROW = ". If the first row holds no names, give them with --columns NAME,NAME,…"
HEADER_CHARACTERS = 2**16  # that tell the delimiter: less than any limit of a cell that csv may have
_QUOTED = re.compile(r'"(?:[^"]|"")*"')
_END = "end"  # a line behind the last one, which is a row of its own unless a quote is open
_SEPARATOR = re.compile(r"sep=(.)", re.IGNORECASE)  # as Excel writes it before the header

Row = tuple[int, "dict[str, Any] | InvalidDocumentError"]


class DelimitedRows:
    """Iterates once over (line number, the row as a record or why it is none). An empty cell is absent.

    Cells are text, but of declared fields what the field holds. names: of the columns, in the first row where
    they are not given; hint: what to do where those in the first row seem to be values. A row of more
    characters than the limit is none, and a line of more ends the reading.
    """

    unit = "line"
    cells = True
    blank = 0
    left_out: Mapping[str, int] = {}

    def __init__(
        self,
        path: Path,
        row_bytes: int,
        fields: Mapping[str, FieldType],
        encoding: str | None = None,
        delimiter: str | None = None,
        names: Sequence[str] | None = None,
    ) -> None:
        """Raises SourceError for an encoding or a delimiter that is none, and where the text has another
        encoding or its first row names no columns.
        """
        if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
            raise SourceError(
                f"{path}: {delimiter!r:.80} can be no delimiter (--delimiter); give one character"
            )
        self.path = path
        self._row_bytes = row_bytes
        self._fields = fields
        self._file = PackedFile(path)
        self._line, self._at_end = 1, False
        with self._file.opened(lambda: "its beginning") as file:
            sample = file.read(SAMPLE_BYTES)
        self.encoding = encoding or self._detected_encoding(sample)
        try:
            first = sample.decode(self.encoding, "replace").lstrip("\ufeff").splitlines()[:2]
        except (LookupError, UnicodeError) as error:
            raise SourceError(f"{path}: the encoding {encoding!r:.80} is not known (--encoding)") from error
        said = _SEPARATOR.fullmatch(first[0]) if first else None
        self._lines_before = 0 if said is None else 1
        header = "".join(first[self._lines_before :][:1])
        self._delimiter = delimiter or (said[1] if said else detected_delimiter(header))
        self._quoting: Literal[0, 3] = csv.QUOTE_MINIMAL
        if self._delimiter == "\t":
            lines = sample.decode(self.encoding, "replace").splitlines()
            if _has_bare_quotes(lines[:-1] if len(sample) == SAMPLE_BYTES else lines):  # the last may be cut
                self._quoting = csv.QUOTE_NONE
        self._has_names, self.hint = names is None, ""
        if names is not None:
            self.names = _distinct(path, list(names))
            return
        with self._opened() as text:
            self.names = self._header(text)

    @property
    def delimiter(self) -> str:
        """Between the cells, as it was given or found."""
        return self._delimiter

    @property
    def fraction(self) -> float:
        """Share of the file's bytes read so far, from 0 to 1."""
        return self._file.fraction

    def count(self) -> None:
        """Not known: a cell may hold line breaks."""

    def __iter__(self) -> Iterator[Row]:
        csv.field_size_limit(self._row_bytes)  # of all readers in this process
        with self._opened() as text:
            rows = csv.reader(self._lines_and_end(text), delimiter=self._delimiter, quoting=self._quoting)
            if self._has_names:
                next(rows, None)  # as `_header` read it
            while True:
                self._line = self._lines_before + rows.line_num + 1
                try:
                    cells = next(rows, [_END])
                except csv.Error as error:
                    yield self._line, InvalidDocumentError(f"no row of CSV ({error}): is a quote not closed?")
                    continue
                if self._at_end:
                    if cells != [_END]:
                        yield self._line, InvalidDocumentError("a quote is opened and never closed; close it")
                    return
                if cells:
                    yield self._line, self._record(cells)

    def _detected_encoding(self, sample: bytes) -> str:
        """The encoding of the whole file, or of its beginning where the rest is damaged."""
        state = self.path.stat()
        try:
            return _encoding_of(self.path, state.st_size, state.st_mtime_ns)
        except SourceError:
            return detected_encoding(sample)

    @contextmanager
    def _opened(self) -> Iterator[TextIO]:
        """The text of the file. Raises SourceError where it cannot be read as such."""
        self._line = 1
        with self._file.opened(lambda: f"line {self._line}") as file:
            try:
                text = io.TextIOWrapper(file, self.encoding, newline="")
                for _ in range(self._lines_before):
                    text.readline(self._row_bytes)
                yield text
            except UnicodeError as error:
                what = "what is there"
                if isinstance(error, UnicodeDecodeError):
                    what = f"a byte 0x{error.object[error.start]:02x}"
                raise SourceError(
                    f"{self.path} line {self._line} or later: {what} is no {self.encoding}; name the file's "
                    "encoding with --encoding"
                ) from error

    def _lines(self, text: TextIO) -> Iterator[str]:
        """Lines of at most as many characters as a row may have bytes."""
        while line := text.readline(self._row_bytes + 1):
            if len(line) > self._row_bytes:
                raise SourceError(
                    f"{self.path} line {self._line} or later: longer than {self._row_bytes} characters, the "
                    "limit for one document"
                )
            yield line

    def _lines_and_end(self, text: TextIO) -> Iterator[str]:
        self._at_end = False
        yield from self._lines(text)
        self._at_end = True
        yield _END

    def _header(self, text: TextIO) -> list[str]:
        csv.field_size_limit(self._row_bytes)
        try:
            names = next(csv.reader(self._lines(text), delimiter=self._delimiter, quoting=self._quoting), [])
        except csv.Error as error:
            raise SourceError(
                f"{self.path}: no first row of CSV ({error}): is a quote not closed?"
            ) from error
        # Tables written with their row numbers have no name for that column.
        named = [name.strip() or f"column {number}" for number, name in enumerate(names, start=1)]
        if seem_values(named):
            self.hint = FIRST_ROW
        return _distinct(self.path, named, self.hint)

    def _record(self, cells: Sequence[str]) -> dict[str, Any] | InvalidDocumentError:
        if len(cells) != len(self.names):
            return InvalidDocumentError(
                f"{len(cells)} cells for {len(self.names)} columns; {shown_columns(self.names)}"
            )
        if sum(map(len, cells)) > self._row_bytes:
            return InvalidDocumentError(
                f"longer than {self._row_bytes} characters, the limit for one document"
            )
        try:
            return {
                name: self._value(name, cell)
                for name, cell in zip(self.names, cells, strict=True)
                if cell.strip()
            }
        except InvalidDocumentError as error:
            return error

    def _value(self, name: str, cell: str) -> Any:
        if name == METADATA:
            try:
                return loads(cell.encode())
            except orjson.JSONDecodeError as error:
                raise InvalidDocumentError(f'"{METADATA}" is text but not JSON: {error.msg}') from error
        return cell_value(cell, self._fields.get(name))  # of another type it is refused by name


@lru_cache(maxsize=1024)
def _encoding_of(path: Path, size_bytes: int, modified_ns: int) -> str:
    """The encoding of a file, which is read once for all who read the same. Raises SourceError."""
    with PackedFile(path).opened(lambda: "its beginning") as file:
        return encoding_of(file)


def _distinct(path: Path, names: list[str], hint: str = "") -> list[str]:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise SourceError(f"{path}: the column {twice[0]!r:.200} is there twice; rename one{hint}")
    return names


def _has_bare_quotes(lines: Sequence[str]) -> bool:
    """Whether quotes between tabs are characters as others: each line has as many cells, and one of these
    begins with a quote that nothing closes.
    """
    cells = [line.split("\t") for line in lines if line]
    return len(set(map(len, cells))) == 1 and any(
        cell.startswith('"') and not _QUOTED.fullmatch(cell) for row in cells for cell in row
    )


def detected_delimiter(header: str) -> str:
    """What stands between the names of columns."""
    some = header[:HEADER_CHARACTERS]
    counts = {delimiter: len(next(csv.reader([some], delimiter=delimiter), [])) for delimiter in DELIMITERS}
    return max(counts, key=counts.__getitem__)
