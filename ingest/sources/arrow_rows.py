"""Rows of a Parquet or Arrow file as JSON, streamed from a process of bounded memory.

A file of a few kB may unpack to any size: by repeated values, compressed pages, nested lists. None of what
its metadata say about that binds its content, and Arrow takes no limit. So a child process decodes it
(`ingest/sources/arrow_lines.py`), whose memory the operating system bounds.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import orjson
import pyarrow

from tercet.index.errors import InvalidDocumentError
from tercet.index.wording import reason_of
from tercet.ingest.child import module_command
from tercet.ingest.errors import SourceError
from tercet.ingest.sources.arrow_files import described

MEMORY_BYTES = 3 * 2**28  # with what a build holds beside it, less than 1 GB


class ArrowRows:
    """Iterates once over (row number from 1, the row as a JSON object or why it is none).

    A row of more bytes than the limit is none. `left_out` has, at the end, names of columns and fields that
    JSON has nothing for, and of how many rows they were. names: of the columns. Raises SourceError where the
    file is none of these, is damaged, or takes more memory than MEMORY_BYTES.
    """

    def __init__(self, path: Path, limit_bytes: int, texts: Collection[str]) -> None:
        """texts: names of columns that are text, in any case, though the file may call them binary."""
        self.path = path
        self._limit_bytes = limit_bytes
        self._texts = texts
        self._read, self._share = 0, 0.0
        self.left_out: dict[str, int] = {}
        try:
            table = described(path)
        except (pyarrow.ArrowException, OSError) as error:
            raise SourceError(f"{path}: not a readable {_named(path)} file ({reason_of(error)})") from error
        self._total, self.names = table.rows, table.names
        twice = sorted({name for name in self.names if self.names.count(name) > 1})
        if twice:
            raise SourceError(f"{path}: the column {twice[0]!r:.200} is there twice; rename one")

    @property
    def fraction(self) -> float:
        """Share of the rows read so far, from 0 to 1; of the file where it does not tell how many it has."""
        if self._total is None:
            return self._share
        return self._read / self._total if self._total else 1.0

    def count(self) -> int | None:
        """Number of rows, from what the file says of itself; None of a stream."""
        return self._total

    def __iter__(self) -> Iterator[tuple[int, bytes | InvalidDocumentError]]:
        with self._child() as lines:
            for line in lines:
                if not line.endswith(b"\n"):
                    break  # cut off by the child's end, which is told then
                if line.startswith(b"["):
                    raise SourceError(f"{self.path}: {orjson.loads(line)[0]} after row {self._read}")
                if line.startswith(b"#"):
                    self.left_out, self._share = orjson.loads(line[1:]), 1.0
                    break
                if line.startswith(b"@"):
                    self._share = float(line[1:])
                    continue
                self._read += 1
                yield self._read, line if line.startswith(b"{") else InvalidDocumentError(orjson.loads(line))

    @contextmanager
    def _child(self) -> Iterator[IO[bytes]]:
        """What the child prints. Raises SourceError where it dies without saying why."""
        arguments = [str(self.path), str(self._limit_bytes), str(MEMORY_BYTES), *self._texts]
        with subprocess.Popen(
            [*module_command("tercet.ingest.sources.arrow_lines"), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=2**20,
            process_group=0,  # Ctrl-C is for this process, which then ends the child
            env={**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system"},
        ) as process:
            assert process.stdout is not None  # noqa: S101 - it is a pipe
            try:
                yield process.stdout
            except BaseException:
                process.kill()
                raise
            if process.wait() != 0:
                raise SourceError(
                    f"{self.path}: the reader ended with exit code {process.returncode} after row "
                    f"{self._read}: the file is damaged, or a row of it takes more than "
                    f"{MEMORY_BYTES >> 20} MiB of memory"
                )


def _named(path: Path) -> str:
    kind = path.suffix.lower()
    return {".parquet": "Parquet", ".arrow": "Arrow", ".arrows": "Arrow"}.get(kind, "Parquet or Arrow")
