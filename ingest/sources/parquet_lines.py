"""Prints the rows of a Parquet file, each on a line: `parquet_lines FILE ROW_BYTES MEMORY_BYTES`.

A line is a JSON object, the row; or a string, why the row is none; or a list of one string, why the file
cannot be read on; or `#` and an object, the last one: names of what JSON has nothing for, and of how many
rows it was left out. Whatever the file holds, the process takes no more than MEMORY_BYTES.
"""

from __future__ import annotations

import json
import resource
import sys
from collections import Counter
from collections.abc import Iterator
from importlib.abc import MetaPathFinder
from typing import Any

import orjson
import pyarrow
import pyarrow.parquet
from pyarrow import types

from index.documents.json_values import TOO_DEEP, loads
from ingest.sources.arrow_values import BadValueError, NoJsonError, json_value

_BATCH_ROWS = 256
DOCUMENT_COLUMNS = ("id", "title", "text", "metadata")
_TEXT_COLUMNS = {*DOCUMENT_COLUMNS, "_id"}
_COUNTED_NAMES = 100
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
    counts: Counter[str] = Counter()
    for row in _rows(path):
        left_out: set[str] = set()
        try:
            yield _line(row, row_bytes, left_out)
        except (_BadRowError, BadValueError) as error:
            yield orjson.dumps(str(error))
        counts.update(name for name in left_out if name in counts or len(counts) < _COUNTED_NAMES)
    yield b"#" + orjson.dumps(dict(sorted(counts.items())))


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


def _line(row: pyarrow.RecordBatch, limit_bytes: int, left_out: set[str]) -> bytes:
    """The row as JSON; left_out gets names of what is. Raises _BadRowError or BadValueError."""
    too_long = f"longer than {limit_bytes} bytes, the limit for one document"
    try:
        cells = {name: _plain(column) for name, column in zip(row.schema.names, row.columns, strict=True)}
        if sum(cell.nbytes for cell in cells.values()) > limit_bytes:
            raise _BadRowError(too_long)
        line = _written(_record(cells, left_out))
    except MemoryError as error:
        raise _BadRowError(too_long) from error
    except RecursionError as error:
        raise _BadRowError(TOO_DEEP) from error
    if len(line) > limit_bytes:
        raise _BadRowError(too_long)
    return line


def _written(record: dict[str, Any]) -> bytes:
    try:
        return orjson.dumps(record)
    except TypeError:  # what only Python writes is for the checks of documents to refuse by name
        return json.dumps(record, allow_nan=False).encode()


def _plain(column: pyarrow.Array) -> pyarrow.Array:
    """A column without its dictionary, which holds the values of other rows, too."""
    return column.dictionary_decode() if pyarrow.types.is_dictionary(column.type) else column


def _record(cells: dict[str, pyarrow.Array], left_out: set[str]) -> dict[str, Any]:
    """Columns of one row as JSON knows them."""
    record = {}
    for name, cell in cells.items():
        try:
            record[name] = _cell(name, cell[0], left_out)
        except NoJsonError as error:
            left_out.add(str(error))
    metadata = record.get("metadata")
    if isinstance(metadata, str):
        try:
            record["metadata"] = loads(metadata.encode())
        except orjson.JSONDecodeError as error:
            raise _BadRowError(f'"metadata" is text but not JSON: {error.msg}') from error
    return record


def _cell(name: str, scalar: pyarrow.Scalar, left_out: set[str]) -> Any:
    """A column's value. Many writers call text binary: in a document's own columns it is read as text."""
    if name in _TEXT_COLUMNS and scalar.is_valid and _is_binary(scalar.type):
        try:
            return bytes(scalar.as_py()).decode()
        except UnicodeDecodeError as error:
            raise _BadRowError(f'"{name}" is binary, and no UTF-8 at byte {error.start + 1}') from error
    return json_value(name, scalar, left_out)


def _is_binary(kind: pyarrow.DataType) -> bool:
    return bool(types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind))


if __name__ == "__main__":
    main()
