"""Points as documents with their representations: the inverse of `points.py`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tercet.index.candidates import Document
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.errors import InvalidDocumentError
from tercet.index.wording import reason_of
from tercet.ingest.ready import ReadyBatch
from tercet.ingest.sources.columns import STANDARD
from tercet.transfer.stored import StoredEncodings, matrix_of, ready_documents, terms_of


def documents_of(records: Sequence[Any], settings: CollectionSettings, name: str) -> ReadyBatch:
    """The documents of records with payloads and all vectors: see `ready_documents`.

    name: of the collection, for messages.
    """

    def read(record: Any) -> tuple[Document, StoredEncodings]:
        document = document_of(record.payload)
        return document, _encodings(settings, document, record.vector or {}, record.payload)

    return ready_documents(settings, records, lambda record: f"{name} point {record.id}", read)


def _encodings(
    settings: CollectionSettings, document: Document, vector: Mapping[str, Any], payload: Mapping[str, Any]
) -> StoredEncodings:
    """Raises InvalidDocumentError where a vector is missing, or another than the description says."""
    dense = matrix_of(vector.get("dense"), settings.dense_dimension, "dense")
    tokens, count = None, 0
    if settings.stores_token_vectors:
        tokens = matrix_of(vector.get("colbert", []), settings.colbert_dimension, "colbert")
        count = len(tokens)
    sparse = vector.get("sparse")
    if settings.window is None:
        terms = ([], []) if sparse is None else (sparse.indices, sparse.values)
        spans, rows, lengths = [(0, len(document.text))], [terms], [count]
    else:
        try:
            windows = [
                (
                    int(stored["start"]),
                    int(stored["end"]),
                    int(stored["tokens"]),
                    stored["token_ids"],
                    stored["weights"],
                )
                for stored in payload["windows"]
            ]
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidDocumentError(
                f"its payload does not say which windows it has ({reason_of(error)})"
            ) from error
        spans, lengths = [window[:2] for window in windows], [window[2] for window in windows]
        if not settings.stores_token_vectors:
            lengths = [0] * len(windows)
        rows = [window[3:] for window in windows]
    if len(dense) != len(spans) or sum(lengths) != count or min(lengths, default=0) < 0:
        raise InvalidDocumentError(
            f"{len(dense)} dense and {count} token vectors do not go with its windows; export it again"
        )
    return StoredEncodings(dense, spans, [terms_of(*row) for row in rows], tokens, lengths)


def document_of(payload: Mapping[str, Any] | None) -> Document:
    """The document of a payload. Raises InvalidDocumentError."""
    return STANDARD.document(
        {name: (payload or {}).get(name) for name in ("id", "title", "text", "metadata")}
    )
