"""Reads an exported Parquet file back: documents with their representations, checked row by row."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow
import pyarrow.compute
import pyarrow.parquet

from tercet.index.candidates import Document
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.errors import InvalidDocumentError
from tercet.index.windows.settings import WindowSettings
from tercet.index.wording import reason_of
from tercet.ingest.errors import SourceError
from tercet.ingest.ready import ReadyBatch
from tercet.ingest.sources.columns import STANDARD
from tercet.ingest.sources.json_text import parse_json
from tercet.models.representations import Bool, Float32, Int64, SparseRows, TokenVectors, offsets_of
from tercet.transfer.description import KEY, described_settings
from tercet.transfer.parquet.layout import columns

BATCH_ROWS = 256
_BUFFER_BYTES = 2**20
# Of the file's own description: names of columns, and columns times row groups.
_THRIFT_LIMITS = {"thrift_string_size_limit": 2**24, "thrift_container_size_limit": 200_000}


class ParquetSource:
    """The documents of a file, or of the files of a folder in order of name, of one description."""

    def __init__(self, path: Path) -> None:
        """Raises SourceError where a file is none that an export wrote."""
        files = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
        if not files or not all(file.is_file() for file in files):
            raise SourceError(f"{path}: no such Parquet file, or folder of some")
        self.name = str(path)
        self.total: int | None = 0
        self._files = files
        described = [self._described(file) for file in files]
        self.settings, self.window = described[0]
        for file, settings in zip(files, described, strict=True):
            if settings != described[0]:
                raise SourceError(
                    f"{file} was exported with other settings than {files[0]}; build them apart"
                )

    def __iter__(self) -> Iterator[ReadyBatch]:
        for path in self._files:
            try:
                # A buffer size makes Arrow stream column pages instead of reading whole row groups.
                with pyarrow.parquet.ParquetFile(path, buffer_size=_BUFFER_BYTES, **_THRIFT_LIMITS) as file:
                    row = 1
                    for batch in file.iter_batches(BATCH_ROWS, use_threads=False):
                        yield _ready(
                            batch,
                            [f"{path} row {row + number}" for number in range(len(batch))],
                            self.settings,
                        )
                        row += len(batch)
            except (pyarrow.ArrowException, OSError) as error:
                raise SourceError(f"{path}: damaged ({reason_of(error)})") from error

    def close(self) -> None:
        """Nothing: files are open only while they are read."""

    def _described(self, path: Path) -> tuple[CollectionSettings, WindowSettings | None]:
        """A file's settings, and its collection's windows."""
        try:
            with pyarrow.parquet.ParquetFile(path, **_THRIFT_LIMITS) as file:
                schema, self.total = file.schema_arrow, (self.total or 0) + int(file.metadata.num_rows)
        except (pyarrow.ArrowException, OSError) as error:
            raise SourceError(f"{path}: not a readable Parquet file ({error})") from error
        record = (schema.metadata or {}).get(KEY.encode())
        try:
            described = described_settings(None if record is None else orjson.loads(record), str(path))
        except orjson.JSONDecodeError as error:
            raise SourceError(f"{path}: the description of its vectors is not JSON") from error
        for name, kind in columns(described[0]):
            if name not in schema.names or schema.field(name).type != kind:
                present = schema.field(name).type if name in schema.names else "missing"
                raise SourceError(f"{path}: column {name} is {present}; it must be {kind}")
        return described


def _ready(batch: pyarrow.RecordBatch, positions: list[str], settings: CollectionSettings) -> ReadyBatch:
    """The rows that can be told apart from each other; what is in them is checked later."""
    encoded, owners = batch, np.arange(len(batch) + 1)
    if settings.window is not None:
        lists = batch.column("windows")
        owners = _offsets(lists)
        encoded = pyarrow.RecordBatch.from_struct_array(lists.flatten())
    reasons = _reasons(encoded, owners, settings)
    documents: list[Document] = []
    kept, faults = [], []
    for row, record in enumerate(batch.select(["id", "title", "text", "metadata"]).to_pylist()):
        try:
            if reasons[row]:
                raise InvalidDocumentError(reasons[row])
            if settings.window is not None and owners[row] == owners[row + 1]:
                raise InvalidDocumentError("it has no window")
            documents.append(_document(record))
            kept.append(row)
        except InvalidDocumentError as error:
            faults.append((positions[row], error))
    rows = np.array(kept, np.int64)
    texts = np.concatenate(
        [np.empty(0, np.int64), *(np.arange(owners[row], owners[row + 1]) for row in kept)]
    )
    sound = encoded.take(pyarrow.array(texts))
    windows = None
    if settings.window is not None:
        spans = np.stack([sound.column(name).to_numpy() for name in ("start", "end")], axis=1)
        windows = offsets_of(np.diff(owners)[rows]), spans.astype(np.int64)
    return ReadyBatch.of(
        settings,
        [positions[row] for row in kept],
        documents,
        windows,
        _matrix(sound.column("dense"), settings.dense_dimension),
        SparseRows(
            _offsets(sound.column("sparse_token_ids")),
            sound.column("sparse_token_ids").flatten().to_numpy(),
            sound.column("sparse_weights").flatten().to_numpy(),
        ),
        _token_vectors(sound, settings),
        faults,
    )


def _document(record: dict[str, Any]) -> Document:
    metadata = record["metadata"]
    return STANDARD.document(
        {**record, "metadata": None if metadata is None else parse_json(metadata.encode())}
    )


def _token_vectors(encoded: pyarrow.RecordBatch, settings: CollectionSettings) -> TokenVectors | None:
    if not settings.stores_token_vectors:
        return None
    lists = encoded.column("colbert")
    return TokenVectors(_matrix(lists.flatten(), settings.colbert_dimension), _offsets(lists))


def _reasons(encoded: pyarrow.RecordBatch, owners: Int64, settings: CollectionSettings) -> list[str]:
    """Why each row cannot be read, one reason; empty where it can."""
    reasons = [""] * (len(owners) - 1)
    row_of = np.repeat(np.arange(len(reasons)), np.diff(owners))

    def note(wrong: Bool, reason: str) -> None:
        for row in np.unique(row_of[wrong]).tolist():
            reasons[row] = reasons[row] or reason

    for name in encoded.schema.names:
        if name in ("id", "title", "text", "metadata"):
            continue
        note(_nulls(encoded.column(name)), f"{name} is null, or a value of it is")
    note(
        _lengths(encoded.column("dense")) != settings.dense_dimension,
        f"dense has not {settings.dense_dimension} values",
    )
    ids, weights = (_lengths(encoded.column(name)) for name in ("sparse_token_ids", "sparse_weights"))
    note(ids != weights, "sparse_token_ids and sparse_weights have not as many values")
    if settings.stores_token_vectors:
        lists = encoded.column("colbert")
        wrong = _lengths(lists.flatten()) != settings.colbert_dimension
        note(_any(wrong, _offsets(lists)), f"a vector in colbert has not {settings.colbert_dimension} values")
    return reasons


def _nulls(array: pyarrow.Array) -> Bool:
    """Whether a value is null, or one within it."""
    nulls: Bool = array.is_null().to_numpy(zero_copy_only=False)
    if pyarrow.types.is_list(array.type):
        nulls = nulls | _any(_nulls(array.flatten()), _offsets(array))
    return nulls


def _any(values: Bool, offsets: Int64) -> Bool:
    """Whether a value is true in each stretch, bool[N]."""
    counts = np.append(0, np.cumsum(values))
    true: Bool = counts[offsets[1:]] > counts[offsets[:-1]]
    return true


def _lengths(lists: pyarrow.Array) -> Int64:
    """The length of each list; of a null 0."""
    lengths = pyarrow.compute.list_value_length(lists).fill_null(0)
    return np.asarray(lengths.to_numpy(zero_copy_only=False), np.int64)


def _offsets(lists: pyarrow.Array) -> Int64:
    """Boundaries of the lists in what `flatten` gives, int64[N+1]."""
    return offsets_of(_lengths(lists))


def _matrix(lists: pyarrow.Array, columns: int) -> Float32:
    """Lists of as many values as float32[N, columns]; without columns, of a side that is not there."""
    if columns == 0:
        return np.empty((len(lists), 0), np.float32)
    values: Float32 = lists.flatten().to_numpy(zero_copy_only=False).astype(np.float32, copy=False)
    return values.reshape(-1, columns)
