"""Prints the rows of a Parquet file, each on a line: `parquet_lines FILE ROW_BYTES MEMORY_BYTES`.

A line is a JSON object, the row; or a string, why the row is none; or a list of one string, why the file
cannot be read on. Whatever the file holds, the process takes no more than MEMORY_BYTES.
"""

from __future__ import annotations

import datetime
import math
import resource
import sys
from collections.abc import Iterator, Mapping
from importlib.abc import MetaPathFinder
from typing import Any

import orjson
import pyarrow
import pyarrow.parquet

_BATCH_ROWS = 256
DOCUMENT_COLUMNS = ("id", "title", "text", "metadata")
_BUFFER_BYTES = 2**20


class _BadRowError(Exception):
    """Why a row is no record."""


class _NoPandas(MetaPathFinder):
    """Hides pandas from pyarrow, which would load it: that takes memory, and gives other values."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(name)


def main() -> None:
    """Reads the command line and prints to standard output."""
    path, row_bytes, memory_bytes = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))
    sys.meta_path.insert(0, _NoPandas())
    try:
        for line in _lines(path, row_bytes):
            sys.stdout.buffer.write(line + b"\n")
    except MemoryError:
        _end(f"a row takes more than {memory_bytes >> 20} MiB of memory")
    except (pyarrow.ArrowException, OSError) as error:
        _end(f"damaged ({error})")


def _end(reason: str) -> None:
    sys.stdout.buffer.write(orjson.dumps([reason]) + b"\n")


def _lines(path: str, row_bytes: int) -> Iterator[bytes]:
    for row in _rows(path):
        try:
            yield _line(row, row_bytes)
        except _BadRowError as error:
            yield orjson.dumps(str(error))


def _rows(path: str) -> Iterator[pyarrow.RecordBatch]:
    """The rows, as batches of one. Where many at once do not fit, they are decoded one by one."""
    done = 0
    try:
        for row in _decoded(path, _BATCH_ROWS, 0):
            yield row
            done += 1
    except MemoryError:
        yield from _decoded(path, 1, done)


def _decoded(path: str, batch_rows: int, skip: int) -> Iterator[pyarrow.RecordBatch]:
    # A buffer size makes Arrow stream column pages instead of reading whole row groups.
    with pyarrow.parquet.ParquetFile(path, buffer_size=_BUFFER_BYTES, pre_buffer=False) as file:
        for batch in file.iter_batches(batch_rows, columns=_columns(file.schema_arrow), use_threads=False):
            for position in range(min(skip, batch.num_rows), batch.num_rows):
                yield batch.slice(position, 1)
            skip = max(0, skip - batch.num_rows)


def _columns(schema: pyarrow.Schema) -> list[str] | None:
    """What is read; None for all. Representations that an export wrote are no metadata."""
    exported = b"tercet" in (schema.metadata or {})
    return [name for name in schema.names if name in DOCUMENT_COLUMNS] if exported else None


def _line(row: pyarrow.RecordBatch, limit_bytes: int) -> bytes:
    """The row as JSON. Raises _BadRowError."""
    too_long = f"longer than {limit_bytes} bytes, the limit for one document"
    try:
        cells = {name: _plain(column) for name, column in zip(row.schema.names, row.columns, strict=True)}
        if sum(cell.nbytes for cell in cells.values()) > limit_bytes:
            raise _BadRowError(too_long)
        record = {name: _cell(name, cell) for name, cell in cells.items()}
        line = orjson.dumps(_record(record))
    except MemoryError as error:
        raise _BadRowError(too_long) from error
    except (TypeError, RecursionError) as error:
        raise _BadRowError(f"a value of the row is none of JSON ({error})") from error
    if len(line) > limit_bytes:
        raise _BadRowError(too_long)
    return line


def _plain(column: pyarrow.Array) -> pyarrow.Array:
    """A column without its dictionary, which holds the values of other rows, too."""
    return column.dictionary_decode() if pyarrow.types.is_dictionary(column.type) else column


def _cell(name: str, column: pyarrow.Array) -> Any:
    """The value of a column of one row, as JSON knows it."""
    try:
        (value,) = column.to_pylist(maps_as_pydicts="strict")
    except (ValueError, OverflowError, KeyError) as error:  # as a time in nanoseconds
        raise _BadRowError(f"a value of the row cannot be read ({error})") from error
    return _json_value(name, value)


def _record(cells: dict[str, Any]) -> dict[str, Any]:
    metadata = cells.get("metadata")
    if isinstance(metadata, str):
        try:
            return {**cells, "metadata": orjson.loads(metadata)}
        except orjson.JSONDecodeError as error:
            raise _BadRowError(f'"metadata" is text but not JSON: {error.msg}') from error
    return cells


def _json_value(key: str, value: Any) -> Any:
    """A value as JSON knows it; dates and times become ISO 8601 text."""
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {name: _json_value(f"{key}.{name}", item) for name, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_json_value(key, item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        raise _BadRowError(f'"{key}" is {value}: use null for an unknown number')
    if value is not None and not isinstance(value, str | int | float):
        raise _BadRowError(f'"{key}" holds {type(value).__name__}, which JSON cannot: drop the column')
    return value


if __name__ == "__main__":
    main()
