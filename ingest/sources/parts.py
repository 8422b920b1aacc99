"""Folders of parts, nested or not, and the columns that the names of their folders give (Hive partitions).

In `lang=en/year=2024/part-0.parquet` every record of the file has the columns `lang` and `year`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from tercet.index.documents.metadata import FieldType
from tercet.index.errors import InvalidDocumentError
from tercet.ingest.errors import SourceError
from tercet.ingest.sources.cells import cell_value

NULL = "__HIVE_DEFAULT_PARTITION__"
# What tables keep beside parts, some of which may be out of date: only that tells which ones hold.
_LOGS = {"_delta_log": "a Delta table", ".hoodie": "a Hudi table"}
_CACHES = "cache-"  # of Hugging Face's datasets, beside the data that they were made of


def files_below(folder: Path) -> list[Path]:
    """The files in a folder and in its folders, in order of path; without `_SUCCESS` and others that begin
    with `_` or `.`, which hold no data.

    Raises SourceError for a table whose log tells which of its files hold.
    """
    paths, seen = list[Path](), set[tuple[int, int]]()
    for name, folders, files in os.walk(folder, followlinks=True):
        path = Path(name)
        for log, table in _LOGS.items():
            if log in folders:
                raise SourceError(
                    f"{path}: {table}, whose log tells which files hold; write what it holds to Parquet"
                )
        state = path.stat()
        if (state.st_dev, state.st_ino) in seen:  # a link back to a folder above
            folders.clear()
            continue
        seen.add((state.st_dev, state.st_ino))
        folders[:] = [entry for entry in folders if "=" in entry or not entry.startswith((".", "_"))]
        paths += [path / entry for entry in files if not entry.startswith((".", "_", _CACHES))]
    return sorted((path for path in paths if path.is_file()), key=lambda path: path.parts)


def partition_of(source: Path, path: Path) -> dict[str, str | None]:
    """The columns that the folders between a source and a file of it give, as text; None for null."""
    columns: dict[str, str | None] = {}
    for part in path.relative_to(source).parts[:-1]:  # none of a source that is the file
        name, equals, value = part.partition("=")
        if name and equals:
            columns[unquote(name)] = None if value == NULL else unquote(value)
    return columns


def with_partition(
    records: Iterator[tuple[int | str, Any | InvalidDocumentError]],
    partition: Mapping[str, str | None],
    fields: Mapping[str, FieldType],
) -> Iterator[tuple[int | str, Any | InvalidDocumentError]]:
    """The records, each with these columns instead of its own of the same name.

    A value is text, but of a declared field what the field holds.
    """
    columns = {
        name: None if text is None else cell_value(text, fields.get(name)) for name, text in partition.items()
    }
    for number, record in records:
        yield number, {**record, **columns} if isinstance(record, dict) else record
