"""How a document is a point: named vectors, and a payload from which all of it can be had again.

    dense     D values; in a collection with windows a multivector of those of all windows, compared by the
              largest inner product (max_sim of one query vector)
    sparse    lexical weights by token id; of windows, the largest of each term
    colbert   a multivector of all token vectors, compared by max_sim; never indexed, only scored
    payload   {"id", "title", "text", "metadata"}, and for windows "windows": [{"start", "end", "tokens",
              "token_ids", "weights"}]: where each lies, and which token vectors and lexical weights it has

Qdrant's ids are numbers or UUIDs: a point's is the UUID, version 5, of the document's id.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence
from typing import Any

from qdrant_client import models

from tercet.index.catalog.settings import CollectionSettings
from tercet.transfer.records import StoredDocuments

NAMESPACE = uuid.UUID("6d7a1f0e-3b0c-5e0a-9f0d-7e7c65740001")
FIELD_TYPES = {
    "keyword": models.PayloadSchemaType.KEYWORD,
    "integer": models.PayloadSchemaType.INTEGER,
    "number": models.PayloadSchemaType.FLOAT,
    "boolean": models.PayloadSchemaType.BOOL,
    "datetime": models.PayloadSchemaType.DATETIME,
}


def point_id(identifier: str) -> str:
    """The point of a document's id."""
    return str(uuid.uuid5(NAMESPACE, identifier))


def field_key(field: str) -> str | None:
    """The path of a declared field in payloads; None for a name that no path can have."""
    if '"' in field:
        return None
    return f"metadata.{field}" if re.fullmatch(r"[A-Za-z0-9_-]+", field) else f'metadata."{field}"'


def vector_parameters(settings: CollectionSettings) -> dict[str, models.VectorParams]:
    """The vectors but the sparse one. Products are those of the values that are stored, as in our index.

    Dense values come from float16, and lose nothing in it; token vectors of 8-bit codes would.
    """
    several = models.MultiVectorConfig(comparator=models.MultiVectorComparator.MAX_SIM)
    parameters = {
        "dense": models.VectorParams(
            size=settings.dense_dimension,
            distance=models.Distance.DOT,
            datatype=models.Datatype.FLOAT16,
            multivector_config=None if settings.window is None else several,
        )
    }
    if settings.stores_token_vectors:
        exact = settings.token_codec == "float16"  # noqa: S105  # a codec of token vectors, no secret
        parameters["colbert"] = models.VectorParams(
            size=settings.colbert_dimension,
            distance=models.Distance.DOT,
            datatype=models.Datatype.FLOAT16 if exact else models.Datatype.FLOAT32,
            multivector_config=several,
            hnsw_config=models.HnswConfigDiff(m=0),
            on_disk=True,
        )
    return parameters


def points_of(documents: StoredDocuments) -> list[models.PointStruct]:
    """The points of some documents."""
    points = []
    for row, document in enumerate(documents.documents):
        texts = documents.encodings(row)
        dense = documents.dense[texts.start : texts.stop].tolist()
        vector: dict[str, Any] = {"dense": dense[0] if documents.windows is None else dense}
        ids, weights = documents.lexical.row(row)
        if len(ids):
            vector["sparse"] = models.SparseVector(indices=ids.tolist(), values=weights.tolist())
        tokens = documents.token_vectors(row)
        if tokens is not None and len(tokens):
            vector["colbert"] = tokens.tolist()
        payload: dict[str, Any] = {
            "id": document.id,
            "title": document.title,
            "text": document.text,
            "metadata": dict(document.metadata),
        }
        if documents.windows is not None:
            payload["windows"] = _windows(documents, texts)
        points.append(models.PointStruct(id=point_id(document.id), vector=vector, payload=payload))
    return points


def _windows(documents: StoredDocuments, texts: Sequence[int]) -> list[dict[str, Any]]:
    windows = []
    for text in texts:
        ids, weights = documents.sparse.row(text)
        start, end = documents.windows.spans[text].tolist() if documents.windows is not None else (0, 0)
        tokens = 0
        if documents.colbert is not None:
            tokens = int(documents.colbert.offsets[text + 1] - documents.colbert.offsets[text])
        windows.append(
            {
                "start": start,
                "end": end,
                "tokens": tokens,
                "token_ids": ids.tolist(),
                "weights": weights.tolist(),
            }
        )
    return windows
