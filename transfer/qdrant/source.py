"""Reads back what was exported to Qdrant: points with all their vectors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from index.candidates import Document
from index.errors import InvalidDocumentError
from ingest.errors import SourceError
from ingest.ready import ReadyBatch
from ingest.sources.columns import STANDARD
from models.representations import Float32, SparseRows, TokenVectors, offsets_of
from transfer.description import KEY, described_settings
from transfer.errors import TransferError
from transfer.qdrant.connection import QdrantPlace, qdrant_errors

POINTS_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class _Encodings:
    """Of one document with W encodings. spans: int64[W, 2]; terms: token ids and weights of each; tokens:
    float32[ΣL, C] with lengths int64[W], None where none are stored.
    """

    dense: Float32
    spans: list[tuple[int, int]]
    terms: list[tuple[Any, Any]]
    tokens: Float32 | None
    lengths: list[int]


class QdrantSource:
    """The points of a collection."""

    def __init__(self, place: QdrantPlace, collection: str) -> None:
        """Raises SourceError where the collection is none that an export made."""
        self.name = f"Qdrant collection {collection!r}"
        self._collection = collection
        self._place = place
        try:
            self._client = place.open()
        except TransferError as error:
            raise SourceError(str(error)) from error
        try:
            with qdrant_errors(self.name):
                metadata = self._client.get_collection(collection).config.metadata or {}
                self.total: int | None = self._client.count(collection, exact=True).count
            self.settings, self.window = described_settings(metadata.get(KEY), self.name)
        except TransferError as error:
            self._client.close()
            raise SourceError(str(error)) from error
        except SourceError:
            self._client.close()
            raise

    def __iter__(self) -> Iterator[ReadyBatch]:
        offset: Any = None
        while True:
            try:
                with qdrant_errors(self.name):
                    records, offset = self._client.scroll(
                        self._collection, limit=POINTS_AT_ONCE, offset=offset, with_vectors=True
                    )
            except TransferError as error:
                raise SourceError(str(error)) from error
            yield self._ready(records)
            if offset is None:
                return

    def close(self) -> None:
        """Lets go of the client."""
        self._client.close()

    def _ready(self, records: list[Any]) -> ReadyBatch:
        positions, documents, encoded, faults = [], [], [], []
        for record in records:
            position = f"{self.name} point {record.id}"
            try:
                document = _document(record.payload)
                encoded.append(self._encodings(document, record.vector or {}, record.payload))
                documents.append(document)
                positions.append(position)
            except InvalidDocumentError as error:
                faults.append((position, error))
        windows = None
        if self.settings.window is not None:
            spans = [span for each in encoded for span in each.spans]
            offsets = offsets_of(np.array([len(each.spans) for each in encoded], np.int64))
            windows = offsets, np.array(spans, np.int64).reshape(-1, 2)
        terms = [term for each in encoded for term in each.terms]
        empty = np.empty((0, self.settings.dense_dimension), np.float32)
        return ReadyBatch.of(
            self.settings,
            positions,
            documents,
            windows,
            np.concatenate([empty, *(each.dense for each in encoded)]),
            SparseRows(
                offsets_of(np.array([len(ids) for ids, _ in terms], np.int64)),
                np.concatenate([np.empty(0, np.int32), *(ids for ids, _ in terms)]),
                np.concatenate([np.empty(0, np.float32), *(weights for _, weights in terms)]),
            ),
            self._tokens(encoded),
            faults,
        )

    def _tokens(self, encoded: list[_Encodings]) -> TokenVectors | None:
        if not self.settings.stores_token_vectors:
            return None
        found = [np.empty((0, self.settings.colbert_dimension), np.float32)]
        found += [each.tokens for each in encoded if each.tokens is not None]
        lengths = [length for each in encoded for length in each.lengths]
        return TokenVectors(np.concatenate(found), offsets_of(np.array(lengths, np.int64)))

    def _encodings(
        self, document: Document, vector: Mapping[str, Any], payload: Mapping[str, Any]
    ) -> _Encodings:
        """Raises InvalidDocumentError where a vector is missing, or another than the description says."""
        dense = _matrix(vector.get("dense"), self.settings.dense_dimension, "dense")
        tokens, count = None, 0
        if self.settings.stores_token_vectors:
            tokens = _matrix(vector.get("colbert", []), self.settings.colbert_dimension, "colbert")
            count = len(tokens)
        sparse = vector.get("sparse")
        if self.settings.window is None:
            terms = ([], []) if sparse is None else (sparse.indices, sparse.values)
            spans, rows, lengths = [(0, len(document.text))], [terms], [count]
        else:
            try:
                windows = [
                    (
                        int(each["start"]),
                        int(each["end"]),
                        int(each["tokens"]),
                        each["token_ids"],
                        each["weights"],
                    )
                    for each in payload["windows"]
                ]
            except (KeyError, TypeError, ValueError) as error:
                raise InvalidDocumentError(
                    f"its payload does not say which windows it has ({error!r})"
                ) from error
            spans, lengths = [window[:2] for window in windows], [window[2] for window in windows]
            rows = [window[3:] for window in windows]
        if len(dense) != len(spans) or sum(lengths) != count or min(lengths, default=0) < 0:
            raise InvalidDocumentError(
                f"{len(dense)} dense and {count} token vectors do not go with its windows; export it again"
            )
        return _Encodings(dense, spans, [_terms(*row) for row in rows], tokens, lengths)


def _document(payload: Mapping[str, Any] | None) -> Document:
    return STANDARD.document(
        {name: (payload or {}).get(name) for name in ("id", "title", "text", "metadata")}
    )


def _matrix(values: Any, columns: int, name: str) -> Float32:
    """A vector or a list of them as float32[n, columns]. Raises InvalidDocumentError."""
    if values is None:
        raise InvalidDocumentError(f"it has no vector {name}")
    try:
        found = np.array(values, np.float32)
        return found.reshape(-1, columns) if found.ndim < 2 else found.reshape(len(found), columns)
    except (ValueError, TypeError) as error:
        raise InvalidDocumentError(f"its vector {name} has not {columns} values") from error


def _terms(ids: Any, weights: Any) -> tuple[Any, Any]:
    """Token ids int32[T], ascending, and weights float32[T]. Raises InvalidDocumentError."""
    try:
        found, values = np.array(ids, np.int32).reshape(-1), np.array(weights, np.float32).reshape(-1)
        order = np.argsort(found, kind="stable")
        return found[order], values[order]
    except (ValueError, TypeError, OverflowError, IndexError) as error:
        raise InvalidDocumentError(f"its lexical weights cannot be read ({error})") from error
