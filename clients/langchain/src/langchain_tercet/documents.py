"""LangChain's documents as Tercet's, and back."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from langchain_core.documents import Document
from tercet_client import json_metadata
from tercet_client.types import DocumentRequest, DocumentResponse, HitResponse

SCORES = "tercet"  # the key of metadata that has a hit's scores, where they are asked for


def with_ids(documents: Iterable[Document], ids: Sequence[str | None] | None) -> list[tuple[str, Document]]:
    """Each document with the id that it is stored under: the one given, else its own, else a new one.

    Raises ValueError where there are not as many ids, or one occurs twice.
    """
    listed = list(documents)
    if ids is not None and len(ids) != len(listed):
        raise ValueError(f"there are {len(listed)} documents and {len(ids)} ids; give one for each")
    given = ids if ids is not None else [None] * len(listed)
    named = [
        (id or document.id or str(uuid.uuid4()), document) for id, document in zip(given, listed, strict=True)
    ]
    seen: set[str] = set()
    for id, _ in named:
        if id in seen:
            raise ValueError(f"the id {id!r} occurs twice; give each document an id of its own")
        seen.add(id)
    return named


def to_tercet(id: str, document: Document, title_key: str | None) -> DocumentRequest:
    """The document to put. Its title, where its metadata has one, is encoded before the text."""
    request: DocumentRequest = {
        "id": id,
        "text": document.page_content,
        "metadata": json_metadata(id, document.metadata),
    }
    title = title_of(document.metadata, title_key)
    if title is not None:
        request["title"] = title
    return request


def title_of(metadata: Mapping[str, Any], title_key: str | None) -> str | None:
    """What the metadata has as a title, if that is a text."""
    title = None if title_key is None else metadata.get(title_key)
    return title if isinstance(title, str) else None


def from_tercet(
    found: DocumentResponse | HitResponse, title_key: str | None, *, scores: bool = False
) -> Document:
    """A stored document or a hit. scores: with its scores in the metadata, below `tercet`."""
    metadata = dict(found["metadata"])
    if title_key is not None and found["title"] is not None:
        metadata.setdefault(title_key, found["title"])
    if scores:
        names = ("score", "scores", "window", "explanation")
        metadata[SCORES] = {name: found[name] for name in names if name in found}  # type: ignore[literal-required]
    return Document(page_content=found["text"], metadata=metadata, id=found["id"])
