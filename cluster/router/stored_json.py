"""Stored documents out of the JSON of a shard's answers. Another raises ValueError, KeyError or TypeError."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tercet.index.candidates import Document
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.segments.stored import StoredRepresentations
from tercet.index.windows.store import DocumentWindows
from tercet.models.representations import Float32, SparseRows, TokenVectors, offsets_of


def document_from(record: Mapping[str, Any]) -> Document:
    """A document as lists and `GET` of one have it."""
    document = Document(
        record["id"], record["text"], record["title"], record["metadata"], record.get("collection")
    )
    if not (isinstance(document.id, str) and isinstance(document.text, str)):
        raise TypeError("id and text are to be strings")
    return document


def stored_from(record: Mapping[str, Any], settings: CollectionSettings) -> StoredRepresentations:
    """What a document's `representations` with the encoding `base64` say. settings: of its collection."""
    found = record["representations"]
    texts: Sequence[Mapping[str, Any]] = found.get("windows") or [found]
    rows = [text["sparse"] for text in texts]
    sparse = SparseRows(
        offsets_of(np.array([len(row["token_ids"]) for row in rows])),
        np.concatenate([np.array(row["token_ids"], np.int32) for row in rows]),
        np.concatenate([np.array(row["weights"], np.float32) for row in rows]),
    )
    colbert = None
    if settings.stores_token_vectors:
        vectors = [_unpacked(text["colbert"]) for text in texts]
        colbert = TokenVectors(np.concatenate(vectors), offsets_of(np.array(list(map(len, vectors)))))
    windows = None
    if settings.window is not None:
        spans = [(text.get("start", 0), text.get("end", len(record["text"]))) for text in texts]
        windows = DocumentWindows(np.array([0, len(texts)], np.int64), np.array(spans, np.int64))
    dense = np.stack([_unpacked(text["dense"]) for text in texts])
    return StoredRepresentations(int(found["position"]), dense, sparse, colbert, windows)


def _unpacked(packed: Mapping[str, Any]) -> Float32:
    values = np.frombuffer(base64.b64decode(packed["data"], validate=True), packed["dtype"])
    return values.astype(np.float32).reshape(packed["shape"])
