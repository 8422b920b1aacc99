"""Lines of a plain or packed file, each of bounded length, read as a stream."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from tercet.ingest.sources.packed import PackedFile

MAX_LINE_BYTES = 16 * 2**20
COUNTED_FILE_BYTES = 4 * 2**30
_BLOCK_BYTES = 2**20


class _Lines(Protocol):
    def readline(self, size: int, /) -> bytes: ...


class LineFile:
    """Iterates once over (line number from 1, line); a line over the limit comes as None.

    No more than the limit is ever held, so a file without line breaks, or a packed one that unpacks to
    one endless line, costs bounded memory.
    """

    def __init__(self, path: Path, limit_bytes: int = MAX_LINE_BYTES) -> None:
        self.path = path
        self.limit_bytes = limit_bytes
        self._file = PackedFile(path)

    @property
    def fraction(self) -> float:
        """Share of the file's bytes read so far, from 0 to 1."""
        return self._file.fraction

    def count(self) -> int | None:
        """Number of lines, blank ones included; None where counting would take long."""
        if self._file.packed or self._file.size_bytes > COUNTED_FILE_BYTES:
            return None
        lines, last = 0, b"\n"
        with self.path.open("rb") as file:
            while block := file.read(_BLOCK_BYTES):
                lines += block.count(b"\n")
                last = block[-1:]
        return lines + (last != b"\n")

    def __iter__(self) -> Iterator[tuple[int, bytes | None]]:
        """Raises SourceError where packed data is damaged or cut off."""
        number = 0
        with self._file.opened(lambda: f"line {number}") as file:
            for number, line in enumerate(self._bounded_lines(file), start=1):
                yield number, line

    def _bounded_lines(self, file: _Lines) -> Iterator[bytes | None]:
        while line := file.readline(self.limit_bytes + 1):
            if len(line) > self.limit_bytes:
                while line and not line.endswith(b"\n"):
                    line = file.readline(_BLOCK_BYTES)
                yield None
            else:
                yield line
