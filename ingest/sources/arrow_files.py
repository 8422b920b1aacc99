"""Files of tables: Parquet, and Arrow's own IPC files and streams, told apart by their first bytes.

Feather of version 2 is an IPC file, and what Hugging Face's datasets keep are IPC streams.
"""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pyarrow
import pyarrow.ipc
import pyarrow.parquet

TableFormat = Literal["parquet", "file", "stream"]
_BATCH_ROWS = 256
_BUFFER_BYTES = 2**20
# Of a Parquet file's own description: names of columns, and columns times row groups.
_THRIFT_LIMITS = {"thrift_string_size_limit": 2**24, "thrift_container_size_limit": 200_000}


@dataclass(frozen=True, slots=True)
class TableDescription:
    """What a file says of itself. rows: None of a stream, which does not tell."""

    names: list[str]
    rows: int | None


def format_of(path: Path) -> TableFormat:
    """Raises pyarrow.ArrowInvalid for Feather of version 1, which no Arrow of today reads."""
    with path.open("rb") as file:
        first = file.read(6)
    if first.startswith(b"FEA1"):
        raise pyarrow.ArrowInvalid("it is Feather of version 1; write it as version 2")
    if first == b"ARROW1":
        return "file"
    return "parquet" if first.startswith(b"PAR1") or path.suffix.lower() == ".parquet" else "stream"


def described(path: Path) -> TableDescription:
    """What a file says of itself. Raises pyarrow.ArrowException or OSError where it is damaged."""
    kind = format_of(path)
    if kind == "parquet":
        with pyarrow.parquet.ParquetFile(path, **_THRIFT_LIMITS) as parquet:
            return TableDescription(parquet.schema_arrow.names, int(parquet.metadata.num_rows))
    with pyarrow.memory_map(str(path)) as source:
        if kind == "file":
            with pyarrow.ipc.open_file(source) as file:
                return TableDescription(file.schema.names, max(0, int(file.count_rows())))
        with pyarrow.ipc.open_stream(source) as stream:
            return TableDescription(stream.schema.names, None)


class TableRows:
    """Iterates once over the rows of a file, as batches of one. fraction: share of the file read so far.

    Raises pyarrow.ArrowException, OSError, or MemoryError for what does not fit.
    """

    def __init__(self, path: Path, columns: frozenset[str]) -> None:
        """columns: what alone is read of our own exports, whose representations are no metadata."""
        self.fraction = 0.0
        self._path = path
        self._columns = columns

    def __iter__(self) -> Iterator[pyarrow.RecordBatch]:
        if format_of(self._path) != "parquet":
            for batch in self._messages():
                yield from _rows_of(batch, 0)
            return
        done = 0
        try:
            for row in self._decoded(_BATCH_ROWS, 0):
                yield row
                done += 1
        except MemoryError:  # many at once do not fit
            yield from self._decoded(1, done)

    def _decoded(self, batch_rows: int, skip: int) -> Iterator[pyarrow.RecordBatch]:
        """The rows of a Parquet file but for the first."""
        # A buffer size makes Arrow stream column pages instead of reading whole row groups.
        with pyarrow.parquet.ParquetFile(self._path, buffer_size=_BUFFER_BYTES, pre_buffer=False) as file:
            names = self._names(file.schema_arrow)
            batches = file.iter_batches(batch_rows, columns=names, use_threads=False)
            while True:
                with _half_of_memory() if batch_rows > 1 else nullcontext():
                    batch = next(batches, None)
                if batch is None:
                    return
                yield from _rows_of(batch, skip)
                skip = max(0, skip - batch.num_rows)

    def _messages(self) -> Iterator[pyarrow.RecordBatch]:
        """The batches of an IPC file or stream, each checked before it is looked into.

        They are mapped: a batch of any size takes memory only where it is compressed.
        """
        size = max(1, self._path.stat().st_size)
        with pyarrow.memory_map(str(self._path)) as source:
            if format_of(self._path) == "file":
                with pyarrow.ipc.open_file(source) as file:
                    names = self._names(file.schema)
                    for number in range(file.num_record_batches):
                        self.fraction = number / file.num_record_batches
                        yield _checked(file.get_batch(number), names)
                return
            with pyarrow.ipc.open_stream(source) as stream:
                names = self._names(stream.schema)
                for batch in stream:
                    yield _checked(batch, names)
                    self.fraction = source.tell() / size

    def _names(self, schema: pyarrow.Schema) -> list[str] | None:
        """What is read; None for all."""
        exported = b"tercet" in (schema.metadata or {})
        return [name for name in schema.names if name in self._columns] if exported else None


@contextmanager
def _half_of_memory() -> Iterator[None]:
    """Raises MemoryError where half of what this process may take is not enough within the block."""
    most = resource.getrlimit(resource.RLIMIT_DATA)[1]
    if most != resource.RLIM_INFINITY:
        resource.setrlimit(resource.RLIMIT_DATA, (most // 2, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def _checked(batch: pyarrow.RecordBatch, names: list[str] | None) -> pyarrow.RecordBatch:
    """The columns of these names. Raises pyarrow.ArrowInvalid where one points outside of its data."""
    batch.validate(full=True)
    return batch if names is None else batch.select(names)


def _rows_of(batch: pyarrow.RecordBatch, skip: int) -> Iterator[pyarrow.RecordBatch]:
    for position in range(min(skip, batch.num_rows), batch.num_rows):
        yield batch.slice(position, 1)
