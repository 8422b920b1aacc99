"""Milvus as an engine: a server, or a file of Milvus Lite."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tercet.cluster.backends.engine import Exported, Proposed, Side
from tercet.cluster.backends.milvus.filters import EVERYTHING, literal, narrowed
from tercet.cluster.backends.records import answering, exported_of, stored
from tercet.index.candidates import Document
from tercet.index.documents.conditions import Condition
from tercet.index.search.query import CheckedQuery
from tercet.ingest.ready import ReadyBatch
from tercet.models.representations import SparseRows
from tercet.transfer.milvus.connection import MilvusPlace, milvus_errors
from tercet.transfer.milvus.rows import CONTENTS, document_of, documents_of
from tercet.transfer.stored import sparse_rows, terms_of

ROWS_AT_ONCE = 128  # each of some hundred token vectors
CONTENTS_AT_ONCE = 1000
LEXICAL_AT_ONCE = 2000
IN_ORDER = {"iterator": "True", "reduce_stop_for_best": "True"}  # as the client's own iterator asks


class MilvusEngine:
    """See `tercet.cluster.backends.engine.Engine`."""

    def __init__(self, place: MilvusPlace) -> None:
        """Raises BackendError."""
        self.name = f"Milvus at {place.uri}"
        self._place = place
        with answering(milvus_errors(self.name)):
            self._client = place.open()

    def names(self) -> list[str]:
        """See the protocol."""
        with answering(milvus_errors(self.name)):
            found = self._client.list_collections()
            return sorted(name for name in found if self._place.described(self._client, name) is not None)

    def open(self, name: str) -> MilvusCollection | None:
        """See the protocol."""
        shown = f"collection {name!r} of {self.name}"
        with answering(milvus_errors(shown)):
            if not self._client.has_collection(name):
                return None
            record = self._place.described(self._client, name)
            if record is None:
                return None
            self._client.load_collection(name)
        return MilvusCollection(self._client, name, shown, record, self._place.timeout_seconds)

    def close(self) -> None:
        """Lets go of the client."""
        self._client.close()


class MilvusCollection:
    """See `tercet.cluster.backends.engine.EngineCollection`. Keys are the ids of documents."""

    def __init__(
        self, client: Any, collection: str, name: str, record: object, timeout_seconds: float | None
    ) -> None:
        """Raises BackendError for a record that cannot be read."""
        self._timeout_seconds = timeout_seconds
        self._client = client
        self._collection = collection
        self.name = name
        self.exported: Exported = exported_of(record, name)
        self._fields = [*CONTENTS, "dense", "sparse"]
        if self.exported.settings.stores_token_vectors:
            self._fields.append("colbert")

    def expresses(self, condition: Condition) -> bool:
        """See the protocol."""
        return narrowed(condition).exact

    def propose(
        self, side: Side, query: CheckedQuery, limit: int, condition: Condition | None, *, metadata: bool
    ) -> list[Proposed]:
        """See the protocol."""
        vector: Any = query.dense
        if side == "sparse":
            vector = dict(zip(query.token_ids.tolist(), query.weights.tolist(), strict=True))
        with answering(milvus_errors(self.name)):
            (found,) = self._client.search(
                self._collection,
                [vector],
                anns_field=side,
                limit=limit,
                filter=_expression(condition),
                output_fields=["metadata"] if metadata else [],
                timeout=self._timeout_seconds,
            )
        return [Proposed(hit["id"], hit["distance"], hit["entity"].get("metadata")) for hit in found]

    def rows(self, keys: Sequence[str]) -> Iterator[ReadyBatch]:
        """See the protocol."""
        for first in range(0, len(keys), ROWS_AT_ONCE):
            found = self._got(keys[first : first + ROWS_AT_ONCE], self._fields)
            yield documents_of(found, self.exported.settings, self.name)

    def keys_of(self, ids: Sequence[str]) -> list[str]:
        """See the protocol."""
        return [*ids]

    def documents(self, ids: Sequence[str]) -> list[Document]:
        """See the protocol."""
        found: list[Mapping[str, Any]] = []
        for first in range(0, len(ids), CONTENTS_AT_ONCE):
            found += self._got(ids[first : first + CONTENTS_AT_ONCE], CONTENTS)
        with stored(self.name):
            return [document_of(row) for row in found]

    def page(self, after: str | None, limit: int, condition: Condition | None) -> list[Document]:
        """See the protocol. The order is that of ids."""
        found = self._behind(after, limit, condition, CONTENTS)
        with stored(self.name):
            return [document_of(row) for row in found]

    def count(self, condition: Condition | None) -> int:
        """See the protocol."""
        with answering(milvus_errors(self.name)):
            found = self._client.query(
                self._collection,
                filter=_expression(condition),
                output_fields=["count(*)"],
                timeout=self._timeout_seconds,
            )
        return int(found[0]["count(*)"])

    def lexical(self) -> Iterator[SparseRows]:
        """See the protocol."""
        after: str | None = None
        while True:
            found = self._behind(after, LEXICAL_AT_ONCE, None, ["id", "sparse"])
            if not found:
                return
            with stored(self.name):
                yield _lexical(found)
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
        with answering(milvus_errors(self.name)):
            found = self._client.get(
                self._collection, ids=[*ids], output_fields=[*fields], timeout=self._timeout_seconds
            )
        return [*found]


def _lexical(found: Sequence[Mapping[str, Any]]) -> SparseRows:
    terms = (row["sparse"] or {} for row in found)
    return sparse_rows([terms_of([*each], [*each.values()]) for each in terms])


def _expression(condition: Condition | None) -> str:
    return "" if condition is None else narrowed(condition).expression
