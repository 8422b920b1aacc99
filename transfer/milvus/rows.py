"""How a document is a row: dense and lexical vectors that are searched, and token vectors that are stored.

Milvus Lite has no field for several vectors of a document, so token vectors are an array of strings, each the
base64 of a vector's little-endian float32 values.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from pymilvus import DataType, MilvusClient

from tercet.index.candidates import Document
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.errors import InvalidDocumentError
from tercet.ingest.ready import ReadyBatch
from tercet.ingest.sources.columns import STANDARD
from tercet.models.representations import Float32
from tercet.transfer.records import StoredDocuments
from tercet.transfer.stored import StoredEncodings, matrix_of, ready_documents, terms_of

STRING_BYTES = 65_535  # of a string in Milvus; JSON may have one more
ID_BYTES = 512
ARRAY_ITEMS = 4096
CONTENTS = ["id", "title", "text", "metadata"]


def schema_of(client: MilvusClient, settings: CollectionSettings, description: str) -> Any:
    """The fields of a collection."""
    schema = client.create_schema(auto_id=False, description=description)
    schema.add_field("id", DataType.VARCHAR, is_primary=True, max_length=ID_BYTES)
    schema.add_field("title", DataType.VARCHAR, max_length=STRING_BYTES, nullable=True)
    schema.add_field("text", DataType.VARCHAR, max_length=STRING_BYTES)
    schema.add_field("metadata", DataType.JSON)
    schema.add_field("dense", DataType.FLOAT_VECTOR, dim=settings.dense_dimension)
    schema.add_field("sparse", DataType.SPARSE_FLOAT_VECTOR)
    if settings.stores_token_vectors:
        schema.add_field(
            "colbert",
            DataType.ARRAY,
            element_type=DataType.VARCHAR,
            max_capacity=ARRAY_ITEMS,
            max_length=4 * (-(-4 * settings.colbert_dimension // 3)),
        )
    return schema


def rows_of(documents: StoredDocuments, settings: CollectionSettings) -> Iterator[dict[str, Any]]:
    """The rows of some documents."""
    for row, document in enumerate(documents.documents):
        ids, weights = documents.lexical.row(row)
        fields: dict[str, Any] = {
            "id": document.id,
            "title": document.title,
            "text": document.text,
            "metadata": dict(document.metadata),
            "dense": documents.dense[row],
            "sparse": dict(zip(ids.tolist(), weights.tolist(), strict=True)),
        }
        tokens = documents.token_vectors(row)
        if tokens is not None and settings.stores_token_vectors:
            fields["colbert"] = [base64.b64encode(vector).decode() for vector in tokens.astype("<f4")]
        yield fields


def documents_of(rows: Sequence[Mapping[str, Any]], settings: CollectionSettings, name: str) -> ReadyBatch:
    """The documents of rows with all fields, the inverse of `rows_of`: see `ready_documents`.

    name: of the collection, for messages.
    """

    def read(row: Mapping[str, Any]) -> tuple[Document, StoredEncodings]:
        document = document_of(row)
        return document, _encodings(settings, document, row)

    return ready_documents(settings, rows, lambda row: f"{name} row {row.get('id')!r:.80}", read)


def document_of(row: Mapping[str, Any]) -> Document:
    """The document of a row with its contents. Raises InvalidDocumentError."""
    return STANDARD.document({name: row.get(name) for name in CONTENTS})


def _encodings(settings: CollectionSettings, document: Document, row: Mapping[str, Any]) -> StoredEncodings:
    """Raises InvalidDocumentError where a vector is missing, or another than the description says."""
    dense = matrix_of(row.get("dense"), settings.dense_dimension, "dense")
    tokens = None
    if settings.stores_token_vectors:
        tokens = _token_vectors(row.get("colbert") or [], settings.colbert_dimension)
    terms = row.get("sparse") or {}
    return StoredEncodings(
        dense,
        [(0, len(document.text))],
        [terms_of([*terms], [*terms.values()])],
        tokens,
        [0 if tokens is None else len(tokens)],
    )


def _token_vectors(encoded: Sequence[str], columns: int) -> Float32:
    """float32[n, columns]. Raises InvalidDocumentError."""
    try:
        values = np.frombuffer(b"".join(map(base64.b64decode, encoded)), "<f4")
        return values.reshape(len(encoded), columns).astype(np.float32, copy=False)
    except (ValueError, TypeError) as error:
        raise InvalidDocumentError(f"its token vectors have not {columns} float32 values each") from error
