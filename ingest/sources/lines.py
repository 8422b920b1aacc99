"""Lines of a plain or gzip file, each of bounded length, read as a stream."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Protocol

from ingest.errors import SourceError

MAX_LINE_BYTES = 16 * 2**20
COUNTED_FILE_BYTES = 4 * 2**30
_BLOCK_BYTES = 2**20
_UNPACKED_BYTES = 2**16


class _Lines(Protocol):
    def readline(self, size: int, /) -> bytes: ...


class LineFile:
    """Iterates once over (line number from 1, line); a line over the limit comes as None.

    No more than the limit is ever held, so a file without line breaks, or a gzip file that unpacks to
    one endless line, costs bounded memory.
    """

    def __init__(self, path: Path, limit_bytes: int = MAX_LINE_BYTES) -> None:
        self.path = path
        self.limit_bytes = limit_bytes
        self._size_bytes = path.stat().st_size
        self._packed: BinaryIO | None = None

    @property
    def compressed(self) -> bool:
        return self.path.suffix == ".gz"

    @property
    def fraction(self) -> float:
        """Share of the file's bytes read so far, from 0 to 1."""
        if self._packed is None:
            return 0.0
        if self._packed.closed or self._size_bytes == 0:
            return 1.0
        return min(1.0, self._packed.tell() / self._size_bytes)

    def count(self) -> int | None:
        """Number of lines, blank ones included; None where counting would take long."""
        if self.compressed or self._size_bytes > COUNTED_FILE_BYTES:
            return None
        lines, last = 0, b"\n"
        with self.path.open("rb") as file:
            while block := file.read(_BLOCK_BYTES):
                lines += block.count(b"\n")
                last = block[-1:]
        return lines + (last != b"\n")

    def __iter__(self) -> Iterator[tuple[int, bytes | None]]:
        """Raises SourceError where the gzip stream is damaged or cut off."""
        number = 0
        with self.path.open("rb", _BLOCK_BYTES) as packed:
            self._packed = packed
            try:
                for number, line in enumerate(self._lines(packed), start=1):
                    yield number, line
            except (EOFError, gzip.BadGzipFile, zlib.error) as error:
                raise SourceError(
                    f"{self.path}: the gzip data is damaged or cut off after line {number} ({error}). "
                    "Copy or create the file again."
                ) from error

    def _lines(self, packed: BinaryIO) -> Iterator[bytes | None]:
        if not self.compressed:
            yield from self._bounded_lines(packed)
            return
        # The unpacked stream has its own buffer: reading lines from GzipFile itself is much slower.
        with io.BufferedReader(gzip.GzipFile(fileobj=packed), _UNPACKED_BYTES) as unpacked:
            yield from self._bounded_lines(unpacked)

    def _bounded_lines(self, file: _Lines) -> Iterator[bytes | None]:
        while line := file.readline(self.limit_bytes + 1):
            if len(line) > self.limit_bytes:
                while line and not line.endswith(b"\n"):
                    line = file.readline(_BLOCK_BYTES)
                yield None
            else:
                yield line
