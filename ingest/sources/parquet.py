"""Rows of a Parquet file as plain records, streamed in small batches."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson
import pyarrow
import pyarrow.parquet

from index.errors import InvalidDocumentError
from ingest.errors import SourceError

_BATCH_ROWS = 256
_BUFFER_BYTES = 2**20


class ParquetRows:
    """Iterates once over (row number from 1, record or why it is none).

    Raises SourceError where the file is not Parquet, is damaged, or lacks an id or a text column.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._read = 0
        with self._open() as file:  # closed again, for a folder may hold thousands of parts
            self._total = int(file.metadata.num_rows)
            columns = file.schema_arrow.names
        for wanted in (("id", "_id"), ("text",)):
            if not set(wanted) & set(columns):
                raise SourceError(
                    f"{path}: no column {' or '.join(wanted)}; the columns are {', '.join(columns)}. "
                    "Rename the column that holds it."
                )

    @property
    def fraction(self) -> float:
        """Share of the rows read so far, from 0 to 1."""
        total = self.count()
        return self._read / total if total else 1.0

    def count(self) -> int:
        """Number of rows, from the file's own metadata."""
        return self._total

    def __iter__(self) -> Iterator[tuple[int, Mapping[str, Any] | InvalidDocumentError]]:
        try:
            with self._open() as file:
                for batch in file.iter_batches(_BATCH_ROWS, use_threads=False):
                    for row in _rows(batch):
                        self._read += 1
                        yield self._read, row
        except (pyarrow.ArrowException, OSError) as error:
            raise SourceError(f"{self.path}: damaged after row {self._read} ({error})") from error

    def _open(self) -> pyarrow.parquet.ParquetFile:
        try:
            # A buffer size makes Arrow stream column pages instead of reading whole row groups.
            return pyarrow.parquet.ParquetFile(self.path, buffer_size=_BUFFER_BYTES, pre_buffer=False)
        except (pyarrow.ArrowException, OSError) as error:
            raise SourceError(f"{self.path}: not a readable Parquet file ({error})") from error


def _rows(batch: pyarrow.RecordBatch) -> Iterator[Mapping[str, Any] | InvalidDocumentError]:
    """The rows of a batch as records, or why they are none."""
    try:
        rows = batch.to_pylist(maps_as_pydicts="strict")
    except (ValueError, OverflowError, KeyError) as error:
        # A value that Python cannot hold, as a time in nanoseconds: which row has it?
        if batch.num_rows == 1:
            yield InvalidDocumentError(f"a value of the row cannot be read ({error})")
            return
        for position in range(batch.num_rows):
            yield from _rows(batch.slice(position, 1))
        return
    for row in rows:
        try:
            yield _record(row)
        except InvalidDocumentError as error:
            yield error


def _record(row: Mapping[str, Any]) -> dict[str, Any]:
    record = {key: _json_value(key, value) for key, value in row.items()}
    metadata = record.get("metadata")
    if isinstance(metadata, str):
        try:
            record["metadata"] = orjson.loads(metadata)
        except orjson.JSONDecodeError as error:
            raise InvalidDocumentError(f'"metadata" is text but not JSON: {error.msg}') from error
    return record


def _json_value(key: str, value: Any) -> Any:
    """A value as JSON knows it; dates and times become ISO 8601 text."""
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {name: _json_value(f"{key}.{name}", item) for name, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_json_value(key, item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidDocumentError(f'"{key}" is {value}: use null for an unknown number')
    if value is not None and not isinstance(value, str | int | float):
        raise InvalidDocumentError(
            f'"{key}" holds {type(value).__name__}, which JSON cannot: drop the column'
        )
    return value
