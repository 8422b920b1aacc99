"""Documents as a server is sent them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tercet.index.candidates import Document

BATCH_DOCUMENTS = 64
BATCH_BYTES = 400_000


def document_record(document: Document) -> dict[str, Any]:
    """A document as JSON and sources have it; with its collection where several are read as one."""
    return {
        "id": document.id,
        **({} if document.collection is None else {"collection": document.collection}),
        "title": document.title,
        "text": document.text,
        "metadata": dict(document.metadata),
    }


def stored_record(document: Document) -> dict[str, Any]:
    """What is stored of it: half a character in a text is replaced, which no request can hold."""
    from tercet.index.documents.store import decode_document, encode_document

    return document_record(decode_document(document.id, encode_document(document)[1]))


def batches(documents: Iterable[Document]) -> Iterator[list[dict[str, Any]]]:
    """Documents in requests of bounded size, as records."""
    from tercet.ingest.document_bytes import document_bytes

    batch: list[dict[str, Any]] = []
    batch_bytes = 0
    for document in documents:
        size = document_bytes(document)
        if batch and (len(batch) == BATCH_DOCUMENTS or batch_bytes + size > BATCH_BYTES):
            yield batch
            batch, batch_bytes = [], 0
        batch.append(stored_record(document))
        batch_bytes += size
    if batch:
        yield batch
