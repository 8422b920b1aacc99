"""A collection in Milvus that Tercet writes: its token vectors are codes in strings.

Milvus takes no sparse vector without a term. A document without any has one that no query asks for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from tercet.cluster.backends.engine import EngineDocument, Terms
from tercet.cluster.backends.milvus.collection import MilvusCollection
from tercet.cluster.backends.records import answering
from tercet.cluster.backends.written_rows import FIELDS, NUMBERS, stored_rows
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.documents.metadata import FieldType
from tercet.index.errors import InvalidDocumentError
from tercet.index.segments.rows import DocumentRows
from tercet.models.representations import SparseRows
from tercet.transfer.milvus.connection import milvus_errors
from tercet.transfer.milvus.rows import STRING_BYTES
from tercet.transfer.stored import sparse_rows, terms_of

ROWS_AT_ONCE = 256
FLUSHED_AT = 1000  # documents: of those in memory Milvus Lite has no lexical index, and looks at each
NO_TERM = NUMBERS  # behind all token ids, too
NO_TERMS: Terms = {NO_TERM: 1e-6}


class WrittenMilvusCollection(MilvusCollection):
    """See `tercet.cluster.backends.engine.WrittenEngineCollection`."""

    def __init__(
        self,
        client: Any,
        collection: str,
        name: str,
        settings: CollectionSettings,
        timeout_seconds: float | None,
        *,
        flushes: bool,
    ) -> None:
        """flushes: what is put, as Milvus Lite does not by itself."""
        super().__init__(client, collection, name, settings, timeout_seconds)
        self._flushes = flushes
        self._unflushed = 0

    def rows(self, keys: Sequence[str]) -> list[DocumentRows]:
        found: list[Mapping[str, Any]] = []
        for first in range(0, len(keys), ROWS_AT_ONCE):
            found += self._got(keys[first : first + ROWS_AT_ONCE], FIELDS)
        return stored_rows(found, self.settings, self.name)

    def every_row(self) -> Iterator[list[DocumentRows]]:
        for found in self._every(ROWS_AT_ONCE, FIELDS):
            yield stored_rows(found, self.settings, self.name)

    def prepared(self, documents: Sequence[EngineDocument]) -> list[dict[str, Any]]:
        return list(map(self._row, documents))

    def put(self, prepared: Sequence[dict[str, Any]]) -> None:
        with answering(milvus_errors(self.name)):
            self._client.upsert(self._collection, [*prepared], timeout=self._timeout_seconds)
            self._unflushed += len(prepared)
            if self._flushes and self._unflushed >= FLUSHED_AT:
                self._client.flush(self._collection)
                self._unflushed = 0

    def remove(self, ids: Sequence[str]) -> None:
        with answering(milvus_errors(self.name)):
            self._client.delete(self._collection, ids=[*ids], timeout=self._timeout_seconds)

    def declare(self, fields: Mapping[str, FieldType]) -> None:
        """Nothing: Milvus filters the JSON of metadata without an index of each field."""

    def _lexical(self, found: Sequence[Mapping[str, Any]]) -> SparseRows:
        rows = ({term: weight for term, weight in row["sparse"].items() if term != NO_TERM} for row in found)
        return sparse_rows([terms_of([*each], [*each.values()]) for each in rows])

    def _row(self, document: EngineDocument) -> dict[str, Any]:
        fields = document.fields
        name = f"document {fields['id']!r:.80}"
        if len(document.dense) > 1:
            raise InvalidDocumentError(
                f"{name} has {len(document.dense)} windows, and Milvus keeps one dense vector of a document: "
                "split it, or make the collection without windows",
                "text",
            )
        for part in ("title", "text", "metadata"):
            value = fields[part]
            size = len(orjson.dumps(value) if part == "metadata" else (value or "").encode())
            if size > STRING_BYTES:
                raise InvalidDocumentError(
                    f"{name} has {size} bytes of {part}; Milvus takes {STRING_BYTES}: split it", part
                )
        row = dict(fields)
        if self.settings.dense_dimension:
            row["dense"] = document.dense[0]
        if self.settings.vocabulary_size:
            row["sparse"] = document.sparse or NO_TERMS
        if self.settings.bm25:
            row["words"] = document.words or NO_TERMS
        return row
