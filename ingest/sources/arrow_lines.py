"""Prints the rows of a Parquet or Arrow file: `arrow_lines FILE ROW_BYTES MEMORY_BYTES NAME…`.

A line is a JSON object, the row; or a string, why the row is none; or a list of one string, why the file
cannot be read on; or `@` and a number, the share of the file that was read; or `#` and an object, the last
one: names of what JSON has nothing for, and of how many rows it was left out. Whatever the file holds, the
process takes no more than MEMORY_BYTES. NAME: of columns that are text, in any case, though the file may call
them binary.
"""

from __future__ import annotations

import json
import resource
import sys
from collections import Counter
from collections.abc import Collection, Iterator
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Any

import orjson
import pyarrow

from tercet.index.documents.json_values import TOO_DEEP, loads
from tercet.ingest.sources.arrow_files import TableRows
from tercet.ingest.sources.arrow_values import BadValueError, NoJsonError, is_binary, json_value

DOCUMENT_COLUMNS = frozenset(["id", "title", "text", "metadata"])
_COUNTED_NAMES = 100


class _BadRowError(Exception):
    """Why a row is no record."""


class _NoPandas(MetaPathFinder):
    """Hides pandas from pyarrow, which would load it: that takes memory, and gives other values."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(name)


def main() -> None:
    """Reads the command line and prints to standard output."""
    path, row_bytes, memory_bytes = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    texts = frozenset(name.lower() for name in sys.argv[4:])
    resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))
    sys.meta_path.insert(0, _NoPandas())
    try:
        for line in _lines(path, row_bytes, texts):
            sys.stdout.buffer.write(line + b"\n")
    except MemoryError:
        _end(f"a row, or a compressed batch of rows, takes more than {memory_bytes >> 20} MiB of memory")
    except (pyarrow.ArrowException, OSError) as error:
        _end(f"damaged ({error})")


def _end(reason: str) -> None:
    sys.stdout.buffer.write(orjson.dumps([reason]) + b"\n")


def _lines(path: Path, row_bytes: int, texts: Collection[str]) -> Iterator[bytes]:
    counts: Counter[str] = Counter()
    rows, fraction = TableRows(path, DOCUMENT_COLUMNS), 0.0
    for row in rows:
        if rows.fraction != fraction:
            fraction = rows.fraction
            yield b"@%f" % fraction
        left_out: set[str] = set()
        try:
            yield _line(row, row_bytes, texts, left_out)
        except (_BadRowError, BadValueError) as error:
            yield orjson.dumps(str(error))
        counts.update(name for name in left_out if name in counts or len(counts) < _COUNTED_NAMES)
    yield b"#" + orjson.dumps(dict(sorted(counts.items())))


def _line(row: pyarrow.RecordBatch, limit_bytes: int, texts: Collection[str], left_out: set[str]) -> bytes:
    """The row as JSON; left_out gets names of what is. Raises _BadRowError or BadValueError."""
    too_long = f"longer than {limit_bytes} bytes, the limit for one document"
    try:
        cells = {name: _plain(column) for name, column in zip(row.schema.names, row.columns, strict=True)}
        if sum(cell.nbytes for cell in cells.values()) > limit_bytes:
            raise _BadRowError(too_long)
        line = _written(_record(cells, texts, left_out))
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


def _record(cells: dict[str, pyarrow.Array], texts: Collection[str], left_out: set[str]) -> dict[str, Any]:
    """Columns of one row as JSON knows them."""
    record = {}
    for name, cell in cells.items():
        try:
            text = name.lower() in texts and is_binary(cell.type)
            record[name] = _text(name, cell[0]) if text else json_value(name, cell[0], left_out)
        except NoJsonError as error:
            left_out.add(str(error))
    metadata = record.get("metadata")
    if isinstance(metadata, str):
        try:
            record["metadata"] = loads(metadata.encode())
        except orjson.JSONDecodeError as error:
            raise _BadRowError(f'"metadata" is text but not JSON: {error.msg}') from error
    return record


def _text(name: str, scalar: pyarrow.Scalar) -> str | None:
    """The text in a binary column, as many writers declare texts. Raises _BadRowError for no UTF-8."""
    try:
        return bytes(scalar.as_py()).decode() if scalar.is_valid else None
    except UnicodeDecodeError as error:
        raise _BadRowError(f'"{name}" is binary, and no UTF-8 at byte {error.start + 1}') from error


if __name__ == "__main__":
    main()
