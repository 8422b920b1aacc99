"""Documents from files of any kind that `ingest/sources/files.py` knows, streamed in bounded memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tercet.index.candidates import Document
from tercet.index.documents.metadata import FieldType
from tercet.index.errors import DuplicateDocumentError, InvalidDocumentError
from tercet.ingest.document_bytes import value_bytes
from tercet.ingest.errors import SourceError
from tercet.ingest.passages.measure import TokenMeasure
from tercet.ingest.passages.split import Split
from tercet.ingest.sources.checks import OnError, RecordChecks, Skipped
from tercet.ingest.sources.columns import STANDARD, Columns
from tercet.ingest.sources.delimited import DelimitedRows
from tercet.ingest.sources.durations import with_seconds
from tercet.ingest.sources.files import (
    Records,
    Source,
    holds_texts,
    open_records,
    paths_of,
    shown,
    source_files,
)
from tercet.ingest.sources.lines import MAX_LINE_BYTES
from tercet.ingest.sources.parts import partition_of, with_partition
from tercet.ingest.sources.reading import USUAL_READING, Reading
from tercet.ingest.texts.folder import TextFolder
from tercet.ingest.texts.record import LeftOutError, TextRecord
from tercet.models.tokenizer import Tokenizer

if TYPE_CHECKING:
    from tercet.ingest.passages.cutter import PassageCutter

# Records that are looked at before the first document, where a kind of file does not name its columns.
LOOKED_AT = 100
LOOKED_AT_BYTES = 2**20

Item = tuple[int | str, Any]


class DocumentReader:
    """Iterates once over a source's documents, in order, each such that the index accepts it. Ids differ in
    the whole of it.

    fields: the collection's declared fields, whose values must have the declared type; guessed: those whose
    type was found in the first documents, for messages; partitioned: each has a partition. tokenizer:
    measures passages; without one their tokens are estimated.
    `skipped` counts the records left out; `skips` lists the first of them, and what was left out of others.
    `columns` and `encoding` are those of the file that is read.
    """

    def __init__(
        self,
        source: Source,
        *,
        on_error: OnError = "stop",
        fields: Mapping[str, FieldType] | None = None,
        reading: Reading = USUAL_READING,
        tokenizer: Tokenizer | None = None,
        guessed: Collection[str] = (),
        partitioned: bool = False,
        line_bytes: int = MAX_LINE_BYTES,
    ) -> None:
        self._source = source
        self._fields = fields or {}
        given = paths_of(source)
        parts = [
            (path, partition_of(folder, path))
            for folder in given
            for path in source_files(folder, reading.format)
        ]
        if not parts:
            raise SourceError("no source is given; give a file or a folder")
        self.files = [path for path, _ in parts]
        self._partitions = [partition for _, partition in parts]
        self.columns: Columns = STANDARD
        self.encoding: str | None = None
        self._reading = reading
        self._checks = RecordChecks(on_error, self._fields, guessed, partitioned=partitioned)
        self._cutter = None if reading.split is None else _cutter(reading.split, tokenizer)
        texts = [*reading.columns.own, *(name for name, kind in self._fields.items() if kind == "keyword")]
        self._parts = [open_records(path, line_bytes, self._fields, reading, texts) for path in self.files]
        self._current = self._parts[0], self._partitions[0]
        counts = [part.count() for part in self._parts]
        self._records = None if None in counts else sum(count for count in counts if count is not None)

    @property
    def described(self) -> str:
        """What is read as what, in words."""
        texts = sum((part.endings for part in self._parts if isinstance(part, TextFolder)), Counter[str]())
        said = _counted(texts) if texts else str(self.columns)
        return said if self._cutter is None else f"{said}, {self._cutter.described}"

    @property
    def usual(self) -> bool:
        """Whether it is what every source of ours has, so that nothing is to be said."""
        of_texts = any(holds_texts(path, self._reading.format) for path in self.files)
        return self.columns.usual and self._cutter is None and not of_texts

    @property
    def partitions(self) -> dict[str, set[str]]:
        """The columns that names of folders give, with all values of each."""
        columns: dict[str, set[str]] = {}
        for partition in self._partitions:
            for name, value in partition.items():
                columns.setdefault(name, set()).update([] if value is None else [value])
        return columns

    def is_cell(self, name: str) -> bool:
        """Whether what the file that is read has under a name is text, whatever it means."""
        part, partition = self._current
        return name in partition or (part.cells and name in (part.names or ()))

    @property
    def skipped(self) -> int:
        return self._checks.skipped

    @property
    def skips(self) -> list[Skipped]:
        return self._checks.skips

    @property
    def total(self) -> int | None:
        """Documents in the whole source, as far as known; None where only reading it all would tell."""
        if self._records is None or self._cutter is not None:
            return None
        return self._records - self.skipped - sum(part.blank for part in self._parts)

    @property
    def fraction(self) -> float:
        """Share of the source read so far, from 0 to 1."""
        return sum(part.fraction for part in self._parts) / len(self._parts)

    def no_documents(self) -> SourceError:
        """What is wrong with a source that was read and has none."""
        return no_documents(self._source, self.skipped, self.skips)

    def __iter__(self) -> Generator[Document]:
        """Raises SourceError or DuplicateDocumentError at a bad record, unless those are skipped. Raises
        SourceError where it is unclear which columns hold what.
        """
        with closing(self._checks) as checks:
            for path, part, partition in zip(self.files, self._parts, self._partitions, strict=True):
                self._current = part, partition
                for number, record in self._looked_at(path, part, partition):
                    position = f"{path} {part.unit} {number}"
                    for item in self._items(record, position):
                        problem = item if isinstance(item, Exception) else checks.problem(item, position)
                        if problem is None and isinstance(item, Document):
                            yield item
                        elif problem is not None:
                            again = self.columns.id is None and isinstance(problem, DuplicateDocumentError)
                            checks.skip(
                                position, problem, harmless=again or isinstance(problem, LeftOutError)
                            )
                    if isinstance(record, TextRecord) and record.left_out is not None:
                        checks.note(position, record.left_out)
                for name, rows in part.left_out.items():
                    checks.left_out(str(path), name, rows)

    def _looked_at(self, path: Path, part: Records, partition: Mapping[str, str | None]) -> Iterable[Item]:
        """The records of a file, once its columns are known."""
        items, begun, names = iter(part), list[Item](), part.names
        choice = self._reading.columns
        if partition:
            items = with_partition(items, partition, self._fields)
        if names is None or choice.has_paths:
            begun, first_names = _beginning(items)
            names = first_names if names is None else names
        self.columns = choice.among(
            [*dict.fromkeys([*names, *partition])],
            str(path),
            [record for _, record in begun if isinstance(record, Mapping)],
            part.hint if isinstance(part, DelimitedRows) else "",
        )
        self.encoding = part.encoding
        return chain(begun, items)

    def _items(self, record: Any, position: str) -> Iterator[Document | Exception]:
        """The document of a record, or its passages; or why there are none."""
        item = self._document(record)
        if self._cutter is None or isinstance(item, Exception):
            yield item
            return
        problem = self._checks.problem(item, position)
        if problem is not None:
            yield problem
            return
        try:
            yield from self._cutter.passages(item, record.outline if isinstance(record, TextRecord) else None)
        except InvalidDocumentError as error:
            yield error

    def _document(self, record: Any) -> Document | InvalidDocumentError:
        if isinstance(record, InvalidDocumentError):
            return record
        try:
            return with_seconds(self.columns.document(record), self._fields)
        except InvalidDocumentError as error:
            return error


def no_documents(source: Source, skipped: int, skips: Sequence[Skipped]) -> SourceError:
    """What is wrong with a source that was read and has none. skips: the first records that were left out."""
    records = "1 record" if skipped == 1 else f"{skipped:,} records"
    first = f"; the first: {skips[0]}" if skips else ""
    return SourceError(
        f"{shown(source)}: no documents ({records} skipped{first}); nothing was written. "
        "Give a source with at least one document."
    )


def _cutter(split: Split, tokenizer: Tokenizer | None) -> PassageCutter:
    from tercet.ingest.passages.cutter import PassageCutter  # what cuts is seldom needed

    return PassageCutter(split, TokenMeasure(tokenizer))


def _counted(endings: Counter[str]) -> str:
    commonest = sorted(endings.items(), key=lambda entry: (-entry[1], entry[0]))
    counts = ", ".join(f"{count:,} {ending}" for ending, count in commonest)
    files = "file" if endings.total() == 1 else "files"
    return f"{endings.total():,} {files} of text ({counts})"


def _beginning(items: Iterator[Item]) -> tuple[list[Item], list[str]]:
    """The first records, and all names in them in order of appearance."""
    begun, names, size = list[Item](), dict[str, None](), 0
    for item in items:
        begun.append(item)
        if isinstance(item[1], Mapping):
            names.update(dict.fromkeys(item[1]))
        size += value_bytes(item[1])
        if len(begun) == LOOKED_AT or size > LOOKED_AT_BYTES:
            break
    return begun, list(names)
