"""What another system has of documents, put together as ready representations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from tercet.index.candidates import Document
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.errors import InvalidDocumentError
from tercet.ingest.ready import ReadyBatch
from tercet.models.representations import Float32, Int32, SparseRows, TokenVectors, offsets_of

Record = TypeVar("Record")


@dataclass(frozen=True, slots=True)
class StoredEncodings:
    """Of one document with W encodings. spans: int64[W, 2]; terms: token ids and weights of each; tokens:
    float32[ΣL, C] with lengths int64[W], None where none are stored.
    """

    dense: Float32
    spans: list[tuple[int, int]]
    terms: list[tuple[Any, Any]]
    tokens: Float32 | None
    lengths: list[int]


def ready_documents(
    settings: CollectionSettings,
    records: Iterable[Record],
    position_of: Callable[[Record], str],
    read: Callable[[Record], tuple[Document, StoredEncodings]],
) -> ReadyBatch:
    """The documents of records; those that are none are faults.

    settings: that they were exported with; position_of: where a record stands, for messages; read: raises
    InvalidDocumentError.
    """
    positions: list[str] = []
    pairs: list[tuple[Document, StoredEncodings]] = []
    faults: list[tuple[str, InvalidDocumentError]] = []
    for record in records:
        position = position_of(record)
        try:
            pairs.append(read(record))
            positions.append(position)
        except InvalidDocumentError as error:
            faults.append((position, error))
    encoded = [encodings for _, encodings in pairs]
    windows = None
    if settings.window is not None:
        spans = [span for encodings in encoded for span in encodings.spans]
        offsets = offsets_of(np.array([len(encodings.spans) for encodings in encoded], np.int64))
        windows = offsets, np.array(spans, np.int64).reshape(-1, 2)
    empty = np.empty((0, settings.dense_dimension), np.float32)
    return ReadyBatch.of(
        settings,
        positions,
        [document for document, _ in pairs],
        windows,
        np.concatenate([empty, *(encodings.dense for encodings in encoded)]),
        sparse_rows([terms for encodings in encoded for terms in encodings.terms]),
        _tokens(settings, encoded),
        faults,
    )


def sparse_rows(terms: Sequence[tuple[Int32, Float32]]) -> SparseRows:
    """The token ids int32[T] and weights float32[T] of each text as rows."""
    return SparseRows(
        offsets_of(np.array([len(ids) for ids, _ in terms], np.int64)),
        np.concatenate([np.empty(0, np.int32), *(ids for ids, _ in terms)]),
        np.concatenate([np.empty(0, np.float32), *(weights for _, weights in terms)]),
    )


def _tokens(settings: CollectionSettings, encoded: Sequence[StoredEncodings]) -> TokenVectors | None:
    if not settings.stores_token_vectors:
        return None
    vectors = [np.empty((0, settings.colbert_dimension), np.float32)]
    vectors += [encodings.tokens for encodings in encoded if encodings.tokens is not None]
    lengths = [length for encodings in encoded for length in encodings.lengths]
    return TokenVectors(np.concatenate(vectors), offsets_of(np.array(lengths, np.int64)))


def matrix_of(values: Any, columns: int, name: str) -> Float32:
    """A vector or a list of them as float32[n, columns]. Raises InvalidDocumentError."""
    if values is None:
        raise InvalidDocumentError(f"it has no vector {name}")
    try:
        matrix = np.array(values, np.float32)
        return matrix.reshape(-1, columns) if matrix.ndim < 2 else matrix.reshape(len(matrix), columns)
    except (ValueError, TypeError) as error:
        raise InvalidDocumentError(f"its vector {name} has not {columns} values") from error


def terms_of(ids: Any, weights: Any) -> tuple[Int32, Float32]:
    """Token ids int32[T], ascending, and weights float32[T]. Raises InvalidDocumentError."""
    try:
        token_ids, values = np.array(ids, np.int32).reshape(-1), np.array(weights, np.float32).reshape(-1)
        order = np.argsort(token_ids, kind="stable")
        return token_ids[order], values[order]
    except (ValueError, TypeError, OverflowError, IndexError) as error:
        raise InvalidDocumentError(f"its lexical weights cannot be read ({error})") from error
