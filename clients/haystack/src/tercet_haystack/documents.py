"""Haystack's documents as Tercet's, and back."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import Any

import numpy as np
from haystack import Document
from haystack.dataclasses import ByteStream, SparseEmbedding
from tercet_client import json_metadata
from tercet_client.types import DocumentRequest, DocumentResponse, HitResponse

KEPT = "_haystack"  # the key of a stored document's metadata for what only Haystack knows
PLACE = "place"  # the key of what is kept for where a document is listed
SCORES = "tercet"  # the key of a found document's meta that has its scores


def to_tercet(document: Document, title_key: str | None, place: int) -> DocumentRequest:
    """The document to put. Its meta stays as it is, so that declared fields can be filtered by.

    place: in the order in which documents are listed. Raises ValueError where the meta is not JSON or has the
    key `_haystack`.
    """
    if KEPT in document.meta:
        raise ValueError(f"the meta of document {document.id!r} has the key {KEPT!r}, which is reserved")
    metadata = {**document.meta, KEPT: {PLACE: place, **_kept(document)}}
    request: DocumentRequest = {
        "id": document.id,
        "text": document.content or "",
        "metadata": json_metadata(document.id, metadata),
    }
    title = None if title_key is None else document.meta.get(title_key)
    if isinstance(title, str):
        request["title"] = title
    return request


def from_tercet(found: DocumentResponse | HitResponse, title_key: str | None) -> Document:
    """A stored document."""
    metadata = dict(found["metadata"])
    kept = metadata.pop(KEPT, {})
    if title_key is not None and found["title"] is not None:
        metadata.setdefault(title_key, found["title"])
    return Document(
        id=found["id"],
        content=None if kept.get("no_content") else found["text"],
        meta=metadata,
        blob=_blob(kept["blob"]) if "blob" in kept else None,
        score=kept.get("score"),
        embedding=_unpacked(kept["embedding"]) if "embedding" in kept else None,
        sparse_embedding=SparseEmbedding.from_dict(kept["sparse_embedding"])
        if "sparse_embedding" in kept
        else None,
    )


def listed_at(found: DocumentResponse) -> tuple[int, str]:
    """Where a document is listed: as written, after what others wrote, which is in order of id."""
    return found["metadata"].get(KEPT, {}).get(PLACE, 0), found["id"]


def from_hit(hit: HitResponse, title_key: str | None, *, scores: bool) -> Document:
    """A hit, with its score, and where scores are asked for with all of them in its meta."""
    document, names = from_tercet(hit, title_key), ("scores", "window", "explanation")
    told = {name: hit[name] for name in names if name in hit}  # type: ignore[literal-required]
    meta = {**document.meta, SCORES: told} if scores else document.meta
    return replace(document, score=hit["score"], meta=meta)


def _kept(document: Document) -> dict[str, Any]:
    """What Tercet has no place for. Embeddings are kept as they are, and not searched."""
    kept: dict[str, Any] = {}
    if document.content is None:
        kept["no_content"] = True
    if document.blob is not None:
        blob = document.blob
        data = base64.b64encode(blob.data).decode()
        kept["blob"] = {"data": data, "meta": blob.meta, "mime_type": blob.mime_type}
    if document.score is not None:
        kept["score"] = document.score
    if document.embedding is not None:
        kept["embedding"] = base64.b64encode(np.asarray(document.embedding, "<f8").tobytes()).decode()
    if document.sparse_embedding is not None:
        kept["sparse_embedding"] = document.sparse_embedding.to_dict()
    return kept


def _blob(kept: dict[str, Any]) -> ByteStream:
    return ByteStream(base64.b64decode(kept["data"]), kept["meta"], kept["mime_type"])


def _unpacked(data: str) -> list[float]:
    vector: list[float] = np.frombuffer(base64.b64decode(data), "<f8").tolist()
    return vector
