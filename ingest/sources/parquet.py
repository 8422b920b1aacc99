"""Rows of a Parquet file as JSON, streamed from a process of bounded memory.

A Parquet file of a few kB may unpack to any size: by repeated values, compressed pages, nested lists. None of
what its metadata say about that binds its content, and Arrow takes no limit. So a child process decodes it
(`ingest/sources/parquet_lines.py`), whose memory the operating system bounds.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import orjson
import pyarrow
import pyarrow.parquet

from index.errors import InvalidDocumentError
from ingest.child import child_environment, module_command
from ingest.errors import SourceError

MEMORY_BYTES = 2**30
# Of the file's own description, which is parsed here: names of columns, and columns times row groups.
_THRIFT_LIMITS = {"thrift_string_size_limit": 2**24, "thrift_container_size_limit": 200_000}


class ParquetRows:
    """Iterates once over (row number from 1, the row as a JSON object or why it is none).

    A row of more bytes than the limit is none. `left_out` has, at the end, names of columns and fields that
    JSON has nothing for, and of how many rows they were. names: of the columns. Raises SourceError where the
    file is not Parquet, is damaged, or takes more memory than MEMORY_BYTES.
    """

    def __init__(self, path: Path, limit_bytes: int) -> None:
        self.path = path
        self._limit_bytes = limit_bytes
        self._read = 0
        self.left_out: dict[str, int] = {}
        try:
            with pyarrow.parquet.ParquetFile(path, **_THRIFT_LIMITS) as file:
                self._total = int(file.metadata.num_rows)
                self.names: list[str] = file.schema_arrow.names
        except (pyarrow.ArrowException, OSError) as error:
            raise SourceError(f"{path}: not a readable Parquet file ({error})") from error

    @property
    def fraction(self) -> float:
        """Share of the rows read so far, from 0 to 1."""
        return self._read / self._total if self._total else 1.0

    def count(self) -> int:
        """Number of rows, from the file's own metadata."""
        return self._total

    def __iter__(self) -> Iterator[tuple[int, bytes | InvalidDocumentError]]:
        with self._child() as lines:
            for line in lines:
                if not line.endswith(b"\n"):
                    break  # cut off by the child's end, which is told then
                if line.startswith(b"["):
                    raise SourceError(f"{self.path}: {orjson.loads(line)[0]} after row {self._read}")
                if line.startswith(b"#"):
                    self.left_out = orjson.loads(line[1:])
                    break
                self._read += 1
                yield self._read, line if line.startswith(b"{") else InvalidDocumentError(orjson.loads(line))

    @contextmanager
    def _child(self) -> Iterator[IO[bytes]]:
        """What the child prints. Raises SourceError where it dies without saying why."""
        arguments = [str(self.path), str(self._limit_bytes), str(MEMORY_BYTES)]
        with subprocess.Popen(
            [*module_command("ingest.sources.parquet_lines"), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=2**20,
            process_group=0,  # Ctrl-C is for this process, which then ends the child
            env={**child_environment(), "ARROW_DEFAULT_MEMORY_POOL": "system"},
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
