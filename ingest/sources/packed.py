"""Files packed by gzip, bzip2, xz or zstd, read as what they unpack to."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from tercet.ingest.errors import SourceError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_UNPACKED_BYTES = 2**16
OPENERS: dict[str, Callable[[BinaryIO], BinaryIO]] = {
    ".gz": lambda file: cast(BinaryIO, gzip.GzipFile(fileobj=file)),
    ".bz2": lambda file: cast(BinaryIO, bz2.BZ2File(file)),
    ".xz": lambda file: cast(BinaryIO, lzma.LZMAFile(file)),  # noqa: SIM115  # closed by `opened`
    ".zst": lambda file: cast(BinaryIO, zstd.ZstdFile(file)),
}
"""By the ending of a file's name."""
_DAMAGED = (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError, zstd.ZstdError)
_BLOCK_BYTES = 2**20


class PackedFile:
    """A file that may be packed, as its name says, and how far it is read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size_bytes = path.stat().st_size
        self._open: BinaryIO | None = None

    @property
    def packed(self) -> bool:
        return self.path.suffix.lower() in OPENERS

    @property
    def fraction(self) -> float:
        """Share of the file's bytes read so far, from 0 to 1."""
        if self._open is None:
            return 0.0
        if self._open.closed or self.size_bytes == 0:
            return 1.0
        return min(1.0, self._open.tell() / self.size_bytes)

    @contextmanager
    def opened(self, position: Callable[[], str]) -> Iterator[BinaryIO]:
        """What the file holds, unpacked, for reading within the block.

        Raises SourceError where packed data is damaged or cut off; position: how far it was read, for that.
        """
        suffix = self.path.suffix.lower()
        damaged = (*_DAMAGED, OSError) if suffix == ".bz2" else _DAMAGED
        with self.path.open("rb", _BLOCK_BYTES) as file:
            self._open = file
            if not self.packed:
                yield file
                return
            try:
                # The unpacked stream has its own buffer: reading lines from GzipFile itself is much slower.
                raw = cast(io.RawIOBase, OPENERS[suffix](file))
                with io.BufferedReader(raw, _UNPACKED_BYTES) as unpacked:
                    yield unpacked
            except damaged as error:
                raise SourceError(
                    f"{self.path}: the {suffix[1:]} data is damaged or cut off after {position()} ({error}). "
                    "Copy or create the file again."
                ) from error
