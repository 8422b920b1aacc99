"""A collection in Milvus as it is searched and read; those that an export wrote."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tercet.cluster.backends.engine import Proposed, ProposingQuery, Side
from tercet.cluster.backends.milvus.filters import EVERYTHING, literal, narrowed
from tercet.cluster.backends.records import Exported, answering, rows_of, served_settings, stored
from tercet.cluster.backends.written_rows import CONTENTS, document_of
from tercet.index.candidates import Document
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.documents.conditions import Condition
from tercet.index.segments.rows import DocumentRows
from tercet.ingest.ready import ReadyBatch
from tercet.models.representations import SparseRows
from tercet.transfer.milvus.connection import milvus_errors
from tercet.transfer.milvus.rows import documents_of
from tercet.transfer.stored import sparse_rows, terms_of

ROWS_AT_ONCE = 128  # each of some hundred token vectors
CONTENTS_AT_ONCE = 1000
LEXICAL_AT_ONCE = 2000
IN_ORDER = {"iterator": "True", "reduce_stop_for_best": "True"}  # as the client's own iterator asks


class MilvusCollection:
    """See `tercet.cluster.backends.engine.EngineCollection`, but for `rows`. Keys are documents' ids."""

    def __init__(
        self,
        client: Any,
        collection: str,
        name: str,
        settings: CollectionSettings,
        timeout_seconds: float | None,
    ) -> None:
        self._client = client
        self._collection = collection
        self.name = name
        self.settings = settings
        self._timeout_seconds = timeout_seconds

    def expresses(self, condition: Condition) -> bool:
        return narrowed(condition).exact

    def propose(
        self, side: Side, query: ProposingQuery, limit: int, condition: Condition | None, *, metadata: bool
    ) -> list[Proposed]:
        vector: Any = {"dense": query.dense, "sparse": query.sparse, "words": query.words}[side]
        with answering(milvus_errors(self.name)):
            (found,) = self._client.search(
                self._collection,
                [vector],
                anns_field=side,
                limit=limit,
                filter=_expression(condition),
                output_fields=["metadata"] if metadata else ["id"],
                timeout=self._timeout_seconds,
            )
        return [Proposed(hit["id"], hit["distance"], hit["entity"].get("metadata")) for hit in found]

    def keys_of(self, ids: Sequence[str]) -> list[str]:
        return [*ids]

    def documents(self, ids: Sequence[str]) -> list[Document]:
        found: list[Mapping[str, Any]] = []
        for first in range(0, len(ids), CONTENTS_AT_ONCE):
            found += self._got(ids[first : first + CONTENTS_AT_ONCE], CONTENTS)
        with stored(self.name):
            return [document_of(row) for row in found]

    def page(self, after: str | None, limit: int, condition: Condition | None) -> list[Document]:
        """The order is that of ids."""
        found = self._behind(after, limit, condition, CONTENTS)
        with stored(self.name):
            return [document_of(row) for row in found]

    def count(self, condition: Condition | None) -> int:
        with answering(milvus_errors(self.name)):
            found = self._client.query(
                self._collection,
                filter=_expression(condition),
                output_fields=["count(*)"],
                timeout=self._timeout_seconds,
            )
        return int(found[0]["count(*)"])

    def lexical(self) -> Iterator[SparseRows]:
        for found in self._every(LEXICAL_AT_ONCE, ["id", "sparse"]):
            with stored(self.name):
                yield self._lexical(found)

    def _lexical(self, found: Sequence[Mapping[str, Any]]) -> SparseRows:
        terms = (row["sparse"] or {} for row in found)
        return sparse_rows([terms_of([*each], [*each.values()]) for each in terms])

    def _every(self, count: int, fields: Sequence[str]) -> Iterator[list[Mapping[str, Any]]]:
        """All rows, so many at a time."""
        after: str | None = None
        while True:
            found = self._behind(after, count, None, fields)
            if not found:
                return
            yield found
            after = found[-1]["id"]

    def _behind(
        self, after: str | None, limit: int, condition: Condition | None, fields: Sequence[str]
    ) -> list[Mapping[str, Any]]:
        """The next rows in order of id."""
        expression = _expression(condition)
        if after is not None:
            expression = f"id > {literal(after)} and ({expression or EVERYTHING})"
        with answering(milvus_errors(self.name)):
            found = self._client.query(
                self._collection,
                filter=expression,
                output_fields=[*fields],
                limit=limit,
                timeout=self._timeout_seconds,
                **IN_ORDER,
            )
        return [*found]

    def _got(self, ids: Sequence[str], fields: Sequence[str]) -> list[Mapping[str, Any]]:
        if not ids:
            return []
        with answering(milvus_errors(self.name)):
            found = self._client.get(
                self._collection, ids=[*ids], output_fields=[*fields], timeout=self._timeout_seconds
            )
        return [*found]


class ExportedMilvusCollection(MilvusCollection):
    """One that an export wrote."""

    def __init__(
        self, client: Any, collection: str, name: str, exported: Exported, timeout_seconds: float | None
    ) -> None:
        settings = served_settings(exported, collection)
        super().__init__(client, collection, name, settings, timeout_seconds)
        self._exported = exported.settings
        self.exported_as = exported.snapshot
        self._fields = [*CONTENTS, "dense", "sparse"]
        if exported.settings.stores_token_vectors:
            self._fields.append("colbert")

    def rows(self, keys: Sequence[str]) -> list[DocumentRows]:

        def batches() -> Iterator[ReadyBatch]:
            for first in range(0, len(keys), ROWS_AT_ONCE):
                found = self._got(keys[first : first + ROWS_AT_ONCE], self._fields)
                yield documents_of(found, self._exported, self.name)

        return rows_of(batches(), self.settings, self.name)


def _expression(condition: Condition | None) -> str:
    return "" if condition is None else narrowed(condition).expression
