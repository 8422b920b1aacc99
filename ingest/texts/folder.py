"""The files of text of a folder, or one of them, as records of a source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from tercet.index.errors import InvalidDocumentError
from tercet.ingest.texts.files import text_files
from tercet.ingest.texts.parser import FileParser, require_packages
from tercet.ingest.texts.reading import COLUMNS, TextReader
from tercet.ingest.texts.record import TextRecord


class TextFolder:
    """Iterates once over (name, the record of the file or why there is none), in order of name."""

    unit = "file"
    blank = 0
    names = COLUMNS
    cells = False
    left_out: Mapping[str, int] = {}

    def __init__(
        self, source: Path, limit_bytes: int, encoding: str | None = None, read_as: str | None = None
    ) -> None:
        """read_as: the ending that all files are read as. Raises SourceError where a package that reads such
        files is not installed.
        """
        self.encoding = encoding
        self._limit_bytes = limit_bytes
        self._files = list(text_files(source, read_as))
        self._read = 0
        endings = {file.ending for file in self._files if file.left_out is None}
        require_packages(endings)

    @property
    def endings(self) -> Counter[str]:
        """Endings of names, and how many files end so."""
        return Counter(file.ending for file in self._files if file.left_out is None)

    @property
    def fraction(self) -> float:
        """Share of the files read so far, from 0 to 1."""
        return self._read / len(self._files) if self._files else 1.0

    def count(self) -> int:
        """Files and folders, those left out included."""
        return len(self._files)

    def __iter__(self) -> Iterator[tuple[str, TextRecord | InvalidDocumentError]]:
        with FileParser(self._limit_bytes) as parser:
            reader = TextReader(parser, self._limit_bytes, self.encoding)
            for file in self._files:
                record = reader.record(file)
                self._read += 1
                yield file.name, record
