"""Writes a Parquet file, a row group at a time; it has its name only once it is complete."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow
import pyarrow.parquet

from tercet.index.catalog.settings import CollectionSettings
from tercet.models.files import force
from tercet.models.representations import Float32, Int64, SparseRows, TokenVectors
from tercet.transfer.description import KEY, settings_record
from tercet.transfer.errors import TransferError
from tercet.transfer.parquet.layout import columns, encoding_fields
from tercet.transfer.push import exists
from tercet.transfer.queries import CollectionQuery
from tercet.transfer.records import DocumentLimits, StoredDocuments


class ParquetTarget:
    """A file that does not exist yet, or may be overwritten."""

    limits = DocumentLimits()
    batch = (1024, 65_536)

    def __init__(self, path: Path, settings: CollectionSettings) -> None:
        """settings: of the collection; its codec is none where token vectors are left out."""
        self._path = path
        self._partial = path.with_name(f"{path.name}.partial")
        self._settings = settings
        self._schema = pyarrow.schema(columns(settings))
        self._writer: pyarrow.parquet.ParquetWriter | None = None
        self.name = str(path)
        self.remarks: list[str] = []

    def begin(self, description: dict[str, Any], *, overwrite: bool, resume: bool) -> None:
        """Raises TargetExistsError or TransferError."""
        if resume:
            raise TransferError("a file is written as a whole: leave --resume out, and give --overwrite")
        if not self._path.parent.is_dir():
            raise TransferError(f"{self._path.parent}: no such folder to write {self._path.name} to")
        if self._path.exists() and not overwrite:
            raise exists(self.name)
        written = {**description, "settings": settings_record(self._settings)}
        schema = self._schema.with_metadata({KEY: orjson.dumps(written)})
        self._writer = pyarrow.parquet.ParquetWriter(self._partial, schema, compression="zstd")

    def write(self, documents: StoredDocuments) -> None:
        """Adds a row group."""
        arrays = {name: pyarrow.array(values, pyarrow.string()) for name, values in _texts(documents).items()}
        encoded = replace(
            documents, colbert=documents.colbert if self._settings.stores_token_vectors else None
        )
        if encoded.windows is None:
            arrays |= _encodings(encoded.dense, encoded.sparse, encoded.colbert)
        else:
            arrays |= _sparse(encoded.lexical)
            of_windows = {
                "start": pyarrow.array(encoded.windows.spans[:, 0]),
                "end": pyarrow.array(encoded.windows.spans[:, 1]),
                **_encodings(encoded.dense, encoded.sparse, encoded.colbert),
            }
            struct = pyarrow.StructArray.from_arrays(list(of_windows.values()), list(of_windows))
            arrays["windows"] = _lists(encoded.windows.offsets, struct)
        if self._writer is None:
            raise TransferError(f"{self.name} was not begun")
        self._writer.write_table(pyarrow.table(arrays).select(self._schema.names).cast(self._schema))

    def finish(self) -> None:
        """Gives the file its name, once it is on the disk."""
        if self._writer is not None:
            self._writer.close()
        force(self._partial)
        self._partial.replace(self._path)
        force(self._path.parent)

    def close(self) -> None:
        """Nothing: the file is closed where it is finished or abandoned."""

    def abandon(self, written: int) -> str:
        """Removes what was written."""
        if self._writer is not None:
            self._writer.close()
        self._partial.unlink(missing_ok=True)
        return "nothing was written"

    def query(self, query: CollectionQuery) -> str:
        """A script that goes through the file, with NumPy and pyarrow alone."""
        if self._settings.window is not None:
            return (
                f"# the windows of {self.name} are searched once they are in a collection again:\n"
                f"# tercet collection build {self.name} --from parquet --collection {self._settings.name}\n"
            )
        return _SCRIPT.format(path=str(self._path.resolve()), **query.for_script)


_SCRIPT = """# {text}
import numpy as np
import pyarrow.parquet

dense = np.array({dense}, np.float32)
terms = {terms}  # lexical weights, times the collection's idf where it has one
colbert = np.array({colbert}, np.float32)
weights = np.array({sides})
found = []
for batch in pyarrow.parquet.ParquetFile({path!r}).iter_batches(256):
    for row in batch.to_pylist():
        pairs = zip(row["sparse_token_ids"], row["sparse_weights"])
        late = (colbert @ np.array(row["colbert"], np.float32).T).max(1).mean() if len(colbert) else 0.0
        lexical = sum(terms.get(term, 0.0) * weight for term, weight in pairs)
        scores = [dense @ np.array(row["dense"], np.float32), lexical, late]
        found.append((float(weights @ scores), row["id"], row["title"]))
for score, identifier, title in sorted(found, key=lambda hit: (-hit[0], hit[1]))[:{hits}]:
    print(round(score, 6), identifier, title)
"""


def _texts(documents: StoredDocuments) -> dict[str, list[str | None]]:
    stored = documents.documents
    return {
        "id": [document.id for document in stored],
        "title": [document.title for document in stored],
        "text": [document.text for document in stored],
        "metadata": [orjson.dumps(document.metadata).decode() for document in stored],
    }


def _encodings(dense: Float32, sparse: SparseRows, colbert: TokenVectors | None) -> dict[str, pyarrow.Array]:
    """The columns of W encoded texts."""
    arrays = {"dense": _vectors(dense), **_sparse(sparse)}
    if colbert is not None:
        arrays["colbert"] = _lists(colbert.offsets, _vectors(colbert.vectors))
    names: Sequence[str] = [name for name, _ in encoding_fields(colbert=colbert is not None)]
    return {name: arrays[name] for name in names}


def _sparse(rows: SparseRows) -> dict[str, pyarrow.Array]:
    return {
        "sparse_token_ids": _lists(rows.indptr, pyarrow.array(rows.token_ids)),
        "sparse_weights": _lists(rows.indptr, pyarrow.array(rows.weights)),
    }


def _vectors(vectors: Float32) -> pyarrow.Array:
    """float32[N, D] as N lists of D values."""
    offsets = np.arange(len(vectors) + 1) * vectors.shape[1]
    return _lists(offsets, pyarrow.array(np.ascontiguousarray(vectors).reshape(-1)))


def _lists(offsets: Int64, values: pyarrow.Array) -> pyarrow.Array:
    """Stretches of an array as lists; offsets from 0 on."""
    first = int(offsets[0])
    return pyarrow.ListArray.from_arrays(
        pyarrow.array((offsets - first).astype(np.int32)), values.slice(first)
    )
