"""A collection in Qdrant that Tercet writes: its token vectors are codes in the payload."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from unicodedata import normalize

from qdrant_client import QdrantClient, models

from tercet.cluster.backends.engine import EngineDocument
from tercet.cluster.backends.qdrant.collection import QdrantCollection, filter_of, sparse_vector
from tercet.cluster.backends.records import answering, lacking
from tercet.cluster.backends.written_rows import FIELDS, stored_rows
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.documents.conditions import Condition
from tercet.index.documents.metadata import FieldType
from tercet.index.errors import InvalidDocumentError
from tercet.index.segments.rows import DocumentRows
from tercet.transfer.qdrant.connection import qdrant_errors
from tercet.transfer.qdrant.points import FIELD_TYPES, field_key, point_id
from tercet.transfer.qdrant.target import MULTIVECTOR_VALUES

READ_BY = models.ReadConsistencyType.MAJORITY
STRONG = models.WriteOrdering.STRONG
POINTS_AT_ONCE = 256
MOST_DISTINCT = 100_000  # values of a field that are counted


class WrittenQdrantCollection(QdrantCollection):
    """See `tercet.cluster.backends.engine.WrittenEngineCollection` and `ValueCounts`."""

    def __init__(
        self,
        client: QdrantClient,
        collection: str,
        name: str,
        settings: CollectionSettings,
        *,
        several: bool,
        consistency: Any,
        has_indexes: bool,
    ) -> None:
        """has_indexes: of fields in payloads, as servers have; the rest as `QdrantCollection`."""
        super().__init__(client, collection, name, settings, several=several, consistency=consistency)
        self._has_indexes = has_indexes

    def rows(self, keys: Sequence[str]) -> list[DocumentRows]:
        found: list[Any] = []
        for first in range(0, len(keys), POINTS_AT_ONCE):
            found += self._retrieved(keys[first : first + POINTS_AT_ONCE], FIELDS)
        return stored_rows([each.payload or {} for each in found], self.settings, self.name)

    def every_row(self) -> Iterator[list[DocumentRows]]:
        for records in self._every(POINTS_AT_ONCE, FIELDS, []):
            yield stored_rows([each.payload or {} for each in records], self.settings, self.name)

    def prepared(self, documents: Sequence[EngineDocument]) -> list[models.PointStruct]:
        return list(map(self._point, documents))

    def put(self, prepared: Sequence[models.PointStruct]) -> None:
        with answering(qdrant_errors(self.name)):
            self._client.upsert(self._collection, prepared, wait=True, ordering=STRONG)

    def remove(self, ids: Sequence[str]) -> None:
        keys: list[Any] = self.keys_of(ids)
        with answering(qdrant_errors(self.name)):
            gone = models.PointIdsList(points=keys)
            self._client.delete(self._collection, gone, wait=True, ordering=STRONG)

    def declare(self, fields: Mapping[str, FieldType]) -> None:
        with answering(qdrant_errors(self.name)):
            for field, kind in fields.items():
                key = field_key(field)
                if key is not None and self._has_indexes:
                    self._client.create_payload_index(self._collection, key, FIELD_TYPES[kind])

    def values(self, field: str, condition: Condition | None) -> Mapping[str | bool, int]:
        """Qdrant counts strings as they were given, and so of each canonical form."""
        with answering(qdrant_errors(self.name)):
            hits = self._client.facet(
                self._collection,
                self._key(field),
                filter_of(condition),
                limit=MOST_DISTINCT,
                exact=True,
                consistency=self._consistency,
            ).hits
        if len(hits) == MOST_DISTINCT:
            raise lacking(f"facets of a field with {MOST_DISTINCT:,} values", self.name)
        kind = bool if self.settings.fields[field] == "boolean" else str
        counts = dict[str | bool, int]()
        for hit in hits:
            if isinstance(hit.value, kind):
                value = normalize("NFC", hit.value) if isinstance(hit.value, str) else hit.value
                counts[value] = counts.get(value, 0) + hit.count
        return counts

    def missing(self, field: str, condition: Condition | None) -> int:
        empty = models.IsEmptyCondition(is_empty=models.PayloadField(key=self._key(field)))
        allowed = filter_of(condition)
        with answering(qdrant_errors(self.name)):
            both = models.Filter(must=[empty] if allowed is None else [empty, allowed])
            return self._client.count(self._collection, both, exact=True).count

    def _key(self, field: str) -> str:
        key = field_key(field)
        if key is None or "." in field:  # a path, perhaps
            raise lacking(f"facets of field {field!r}", self.name)
        return key

    def _point(self, document: EngineDocument) -> models.PointStruct:
        vector: dict[str, Any] = {}
        if document.dense.size > MULTIVECTOR_VALUES - 1:
            raise InvalidDocumentError(
                f"document {document.fields['id']!r:.80} has {len(document.dense)} windows of "
                f"{document.dense.shape[1]} dense values; Qdrant takes {MULTIVECTOR_VALUES - 1} values of a "
                "document: split it"
            )
        if document.dense.shape[1]:
            dense = document.dense.tolist()
            vector["dense"] = dense if self._several else dense[0]
        for side, terms in (("sparse", document.sparse), ("words", document.words)):
            if terms:
                vector[side] = sparse_vector(terms)
        return models.PointStruct(
            id=point_id(document.fields["id"]), vector=vector, payload=dict(document.fields)
        )
