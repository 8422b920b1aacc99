"""Which files a source is, of what kind each is, and its records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from tercet.index.documents.metadata import FieldType
from tercet.index.errors import InvalidDocumentError
from tercet.ingest.errors import SourceError
from tercet.ingest.sources.columns import METADATA
from tercet.ingest.sources.formats import ENDINGS, KINDS, FileFormat
from tercet.ingest.sources.json_lines import JsonLines
from tercet.ingest.sources.json_text import parse_json
from tercet.ingest.sources.packed import OPENERS, PackedFile
from tercet.ingest.sources.parts import files_below
from tercet.ingest.sources.reading import Reading
from tercet.ingest.sources.record_paths import RecordPath
from tercet.ingest.sources.unclear_columns import SHOWN_CHARACTERS
from tercet.ingest.sources.usual_names import IDS, TEXTS, TITLES
from tercet.ingest.texts.files import ABOUT, has_text_files, is_text_file
from tercet.ingest.texts.files import ENDINGS as TEXTS_OF_FILES

LINES, ARRAYS, PARQUET, ARROW = (KINDS[kind].endings for kind in ("jsonl", "json", "parquet", "arrow"))
DELIMITED = (*KINDS["csv"].endings, *KINDS["tsv"].endings)
PACKED = (*LINES, *ARRAYS, *DELIMITED)  # Parquet and Arrow are packed within
RECORDS = (*PACKED, *PARQUET, *ARROW)
CORPUS = "corpus"
# What programs for tables and for texts write, and what these can save instead.
SAVED_AS = {
    "CSV": (".xlsx", ".xls", ".xlsm", ".xlsb", ".ods", ".numbers"),
    "PDF": (".docx", ".doc", ".odt", ".rtf", ".pptx", ".ppt", ".odp", ".hwp", ".hwpx", ".pages", ".key"),
}
_TEXTS = (*IDS, *TEXTS, *TITLES, METADATA)


Source = Path | Sequence[Path]
"""A file or folder; or several, read one after the other as if they were one."""


class Records(Protocol):
    """Iterates once over (position, the record or why there is none) of a file, or of a folder of texts.

    unit: of positions; names: of all columns, None where only records tell; encoding: of text, None where a
    kind of file has but one; blank: positions without a record; left_out: names of what JSON has nothing
    for, and of how many records; cells: whether all values are text, whatever they mean.
    """

    @property
    def unit(self) -> str: ...

    @property
    def names(self) -> Sequence[str] | None: ...

    @property
    def cells(self) -> bool: ...

    @property
    def encoding(self) -> str | None: ...

    @property
    def blank(self) -> int: ...

    @property
    def left_out(self) -> Mapping[str, int]: ...

    @property
    def fraction(self) -> float:
        """Share of the file read so far, from 0 to 1."""
        ...

    def count(self) -> int | None:
        """Records of the file, blank ones included; None where only reading it all would tell."""
        ...

    def __iter__(self) -> Iterator[tuple[int | str, Any | InvalidDocumentError]]: ...


def paths_of(source: Source) -> list[Path]:
    """The files and folders that a source is."""
    return [source] if isinstance(source, Path) else list(source)


def shown(source: Source) -> str:
    """A source in messages."""
    return ", ".join(map(str, paths_of(source)))[:SHOWN_CHARACTERS]


def source_files(source: Path, format: FileFormat | None = None) -> list[Path]:
    """The files that hold a source's documents, in order of path. format: of all of them, where it is said.

    A folder holds a file called corpus (BEIR), or else parts of one kind, in it or in folders below it; JSON
    beside parts of another kind describes those. One with texts, there or in its folders, stands for these
    itself, but for one of data with a README or the like. Raises SourceError where there is none.
    """
    if source.is_dir():
        if format is not None:
            return _files_said(source, format)
        files = [path for path in files_below(source) if _kind(path) is not None]
        corpus = [path for path in files if path.parent == source and path.name.split(".")[0] == CORPUS]
        if corpus:
            return corpus[:1]
        parts = [
            paths
            for kinds in (PARQUET, ARROW, LINES, DELIMITED, ARRAYS)
            if (paths := [path for path in files if _kind(path) in kinds])
        ]
        tables = [paths for paths in parts if _kind(paths[0]) not in ARRAYS]
        is_data = any(_is_data(path, source) for paths in tables for path in paths)
        if not is_data and has_text_files(source, beside_data=bool(tables)):
            return [source]
        if len(tables) > 1:
            raise SourceError(
                f"{source}: the folder holds {tables[0][0].name} and {tables[1][0].name}, which are not of "
                "one kind; name the files, or folders of one kind each"
            )
        if parts:
            return parts[0]
        raise SourceError(
            f"{source}: the folder holds no file that ends in {', '.join(RECORDS)}, packed or not, and no "
            f"text ({', '.join(TEXTS_OF_FILES)}). Give a BEIR folder, a folder of such parts, or a file."
        )
    if not source.exists():
        raise SourceError(f"{source}: no such file or folder")
    if not source.is_file():
        raise SourceError(f"{source}: neither a file nor a folder")
    if format is None and _kind(source) is None and not is_text_file(source):
        saved = next((kind for kind, endings in SAVED_AS.items() if source.suffix.lower() in endings), None)
        if saved is not None:
            raise SourceError(f"{source}: {source.suffix} is not read; save it as {saved}")
        raise SourceError(
            f"{source}: unknown kind of file; the name must end in {', '.join(RECORDS)}, in one of these and "
            f"{', '.join(OPENERS)}, or in {', '.join(TEXTS_OF_FILES)}, or --format must say what the file is"
        )
    return [source]


def _files_said(folder: Path, format: FileFormat) -> list[Path]:
    """The files of a folder of which it is said what they are, but for those that tell of the others."""
    if ENDINGS[format] in TEXTS_OF_FILES:
        return [folder]
    files = [path for path in files_below(folder) if not path.stem.lower().startswith(ABOUT)]
    if not files:
        raise SourceError(f"{folder}: the folder holds no file")
    return files


def _is_data(path: Path, folder: Path) -> bool:
    """Whether a part alone says that a folder is one of data: in partitions, or of a kind that nobody has
    among texts.
    """
    inner = path.relative_to(folder).parts[:-1]
    return _kind(path) in (*PARQUET, *ARROW) or any("=" in part for part in inner)


def open_records(
    path: Path, limit_bytes: int, fields: Mapping[str, FieldType], reading: Reading, texts: Sequence[str] = ()
) -> Records:
    """The records of a file, or of a folder of texts. texts: names of columns that hold text, beside the
    usual ones. Raises SourceError where the file is not of the kind that its name says.
    """
    kind = _kind(path) if reading.format is None else ENDINGS[reading.format]
    if reading.names is not None and kind not in DELIMITED:
        raise SourceError(
            f"{path}: --columns goes with CSV and TSV whose first row has no names; leave it out"
        )
    records = None if reading.records is None else RecordPath(path, reading.records)
    if records is not None and kind not in (*LINES, *ARRAYS):
        raise SourceError(f"{path}: --records goes with JSON; leave it out")
    if holds_texts(path, reading.format):
        from tercet.ingest.texts.folder import TextFolder

        return TextFolder(path, limit_bytes, reading.encoding, reading.format and kind)
    if kind in (*PARQUET, *ARROW):
        return _ArrowRecords(path, limit_bytes, [*_TEXTS, *texts])
    if kind in DELIMITED:
        from tercet.ingest.sources.delimited import DelimitedRows

        delimiter = "\t" if reading.delimiter is None and kind != ".csv" else reading.delimiter
        return DelimitedRows(path, limit_bytes, fields, reading.encoding, delimiter, reading.names)
    if kind in ARRAYS and not _has_lines(path, limit_bytes):
        from tercet.ingest.sources.json_file import JsonFile

        return JsonFile(path, limit_bytes, reading.columns.text, records)
    return JsonLines(path, limit_bytes, records)


def holds_texts(path: Path, format: FileFormat | None = None) -> bool:
    """Whether one of a source's files is a text, or a folder of texts. format: of the file, if it is said."""
    if format is None:
        return path.is_dir() or is_text_file(path)
    return ENDINGS[format] in TEXTS_OF_FILES


def _kind(path: Path) -> str | None:
    """The ending of a name that tells what is in the file, packed or not; None where it is unknown."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if len(suffixes) > 1 and suffixes[-1] in OPENERS:
        suffixes.pop()
    ending = suffixes[-1] if suffixes else None
    bare = ending == path.suffix.lower()
    return ending if ending in (RECORDS if bare else PACKED) else None


def _has_lines(path: Path, limit_bytes: int) -> bool:
    """Whether a .json file is JSONL by another name: its first line is an object, and others follow."""
    with PackedFile(path).opened(lambda: "its beginning") as file:
        line = file.readline(limit_bytes).removeprefix(b"\xef\xbb\xbf")
        while line and line.isspace():
            line = file.readline(limit_bytes)
        line = line.strip()
        if not (line.startswith(b"{") and line.endswith(b"}")):
            return False
        after = file.read(1)
        while after.isspace():
            after = file.read(1)
    if after != b"{":  # within an array a comma would be before it
        try:
            parse_json(line)
        except InvalidDocumentError:
            return False
    return bool(after)


class _ArrowRecords:
    """The rows of a Parquet or Arrow file."""

    unit = "row"
    encoding = None
    cells = False
    blank = 0

    def __init__(self, path: Path, row_bytes: int, texts: Sequence[str]) -> None:
        try:
            from tercet.ingest.sources.arrow_rows import (
                ArrowRows,  # pyarrow is large, slow to load, seldom needed
            )
        except ImportError as error:
            kind = "Parquet" if _kind(path) in PARQUET else "Arrow"
            raise SourceError(
                f"{path}: {kind} needs pyarrow ({error}): pip install -c constraints.txt -e '.[cpu,parquet]'"
            ) from error
        self._rows = ArrowRows(path, row_bytes, texts)
        self.names = self._rows.names

    @property
    def fraction(self) -> float:
        return self._rows.fraction

    @property
    def left_out(self) -> Mapping[str, int]:
        """Columns and fields that JSON has nothing for, and of how many rows they were."""
        return self._rows.left_out

    def count(self) -> int | None:
        return self._rows.count()

    def __iter__(self) -> Iterator[tuple[int, Any | InvalidDocumentError]]:
        for number, row in self._rows:
            try:
                yield number, row if isinstance(row, InvalidDocumentError) else parse_json(row)
            except InvalidDocumentError as error:
                yield number, error
