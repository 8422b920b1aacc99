"""A collection in Qdrant as it is searched and read; those that an export wrote."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from qdrant_client import QdrantClient, models

from tercet.cluster.backends.engine import Proposed, ProposingQuery, Side
from tercet.cluster.backends.qdrant.filters import narrowed
from tercet.cluster.backends.records import (
    Exported,
    answering,
    rows_of,
    served_settings,
    stored,
    without_token_vectors,
)
from tercet.cluster.backends.written_rows import CONTENTS, document_of
from tercet.index.candidates import Document
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.documents.conditions import Condition
from tercet.index.search.query import CheckedQuery
from tercet.index.segments.rows import DocumentRows
from tercet.ingest.ready import ReadyBatch
from tercet.models.representations import SparseRows
from tercet.transfer.qdrant.connection import qdrant_errors
from tercet.transfer.qdrant.points import point_id
from tercet.transfer.qdrant.stored import documents_of
from tercet.transfer.stored import sparse_rows, terms_of

ROWS_AT_ONCE = 64  # each of some hundred token vectors, whose values are objects until they are read
CONTENTS_AT_ONCE = 1000
LEXICAL_AT_ONCE = 2000


class QdrantCollection:
    """See `tercet.cluster.backends.engine.EngineCollection`, but for `rows`. Keys are those of points."""

    def __init__(
        self,
        client: QdrantClient,
        collection: str,
        name: str,
        settings: CollectionSettings,
        *,
        several: bool,
        consistency: Any = None,
    ) -> None:
        """several: whether documents have several dense vectors; consistency: of reads, in Qdrant's words."""
        self._client = client
        self._collection = collection
        self.name = name
        self.settings = settings
        self._several = several
        self._consistency = consistency

    def expresses(self, condition: Condition) -> bool:
        return narrowed(condition).exact

    def propose(
        self, side: Side, query: ProposingQuery, limit: int, condition: Condition | None, *, metadata: bool
    ) -> list[Proposed]:
        vector = self._vector(side, query)
        with answering(qdrant_errors(self.name)):
            found = self._client.query_points(
                self._collection,
                query=vector,
                using=side,
                query_filter=filter_of(condition),
                limit=limit,
                with_payload=["metadata"] if metadata else False,
                consistency=self._consistency,
            ).points
        return [Proposed(str(each.id), each.score, (each.payload or {}).get("metadata")) for each in found]

    def keys_of(self, ids: Sequence[str]) -> list[str]:
        return [point_id(id) for id in ids]

    def documents(self, ids: Sequence[str]) -> list[Document]:
        found: list[Any] = []
        keys = self.keys_of(ids)
        for first in range(0, len(keys), CONTENTS_AT_ONCE):
            found += self._retrieved(keys[first : first + CONTENTS_AT_ONCE], CONTENTS)
        with stored(self.name):
            return [document_of(each.payload) for each in found]

    def page(self, after: str | None, limit: int, condition: Condition | None) -> list[Document]:
        """The order is that of points."""
        behind = None if after is None else point_id(after)
        with answering(qdrant_errors(self.name)):
            found, _ = self._client.scroll(
                self._collection,
                scroll_filter=filter_of(condition),
                limit=limit + (behind is not None),
                offset=behind,
                with_payload=CONTENTS,
                consistency=self._consistency,
            )
        with stored(self.name):
            return [document_of(each.payload) for each in found if str(each.id) != behind][:limit]

    def count(self, condition: Condition | None) -> int:
        with answering(qdrant_errors(self.name)):
            return self._client.count(self._collection, filter_of(condition), exact=True).count

    def lexical(self) -> Iterator[SparseRows]:
        for records in self._every(LEXICAL_AT_ONCE, False, ["sparse"]):
            with stored(self.name):
                yield _lexical(records)

    def _every(self, count: int, payload: bool | list[str], vectors: list[str]) -> Iterator[list[Any]]:
        """All points, so many at a time."""
        offset: Any = None
        while True:
            with answering(qdrant_errors(self.name)):
                records, offset = self._client.scroll(
                    self._collection,
                    limit=count,
                    offset=offset,
                    with_payload=payload,
                    with_vectors=vectors or False,
                    consistency=self._consistency,
                )
            yield records
            if offset is None:
                return

    def _retrieved(
        self, keys: Sequence[str], payload: bool | list[str], vectors: list[str] | None = None
    ) -> list[Any]:
        with answering(qdrant_errors(self.name)):
            return self._client.retrieve(
                self._collection,
                list(keys),
                with_payload=payload,
                with_vectors=vectors or False,
                consistency=self._consistency,
            )

    def _vector(
        self, side: Side, query: ProposingQuery
    ) -> models.SparseVector | list[float] | list[list[float]]:
        if side == "dense" and query.dense is not None:
            values: list[float] = query.dense.tolist()
            return [values] if self._several else values
        return sparse_vector(query.words if side == "words" else query.sparse)


class ExportedQdrantCollection(QdrantCollection):
    """One that an export wrote."""

    def __init__(self, client: QdrantClient, collection: str, name: str, exported: Exported) -> None:
        several = exported.settings.window is not None
        settings = served_settings(exported, collection)
        super().__init__(client, collection, name, settings, several=several)
        self._exported = exported.settings
        self.exported_as = exported.snapshot

    def rows(self, keys: Sequence[str]) -> list[DocumentRows]:
        return rows_of(self._batches(keys, self._exported), self.settings, self.name)

    def _batches(self, keys: Sequence[str], settings: CollectionSettings) -> Iterator[ReadyBatch]:
        """What the settings have of these documents."""
        vectors, at_once = ["dense", "sparse"], CONTENTS_AT_ONCE
        if settings.stores_token_vectors:
            vectors, at_once = [*vectors, "colbert"], ROWS_AT_ONCE
        for first in range(0, len(keys), at_once):
            records = self._retrieved(keys[first : first + at_once], True, vectors)
            yield documents_of(records, settings, self.name)


class LateQdrantCollection(ExportedQdrantCollection):
    """One of a server, which computes late interaction: see
    `tercet.cluster.backends.engine.LateInteraction`.
    """

    def light_rows(self, keys: Sequence[str]) -> list[DocumentRows]:
        batches = self._batches(keys, without_token_vectors(self._exported))
        return rows_of(batches, without_token_vectors(self.settings), self.name)

    def late(self, query: CheckedQuery, keys: Sequence[str]) -> dict[str, float]:
        """Of a document in windows it is over all together, and so ours at least."""
        if query.colbert is None or not len(query.colbert) or not keys:
            return {}
        with answering(qdrant_errors(self.name)):
            found = self._client.query_points(
                self._collection,
                query=query.colbert.vectors.tolist(),
                using="colbert",
                query_filter=models.Filter(must=[models.HasIdCondition(has_id=list(keys))]),
                limit=len(keys),
                with_payload=False,
            ).points
        return {str(each.id): each.score / len(query.colbert) for each in found}


def filter_of(condition: Condition | None) -> models.Filter | None:
    """A condition as requests take it."""
    return None if condition is None else narrowed(condition).filter


def sparse_vector(terms: Any) -> models.SparseVector:
    """Weights by term as Qdrant takes them."""
    return models.SparseVector(indices=[*terms], values=[*terms.values()])


def _lexical(records: Sequence[Any]) -> SparseRows:
    sparse = ((record.vector or {}).get("sparse") for record in records)
    return sparse_rows(
        [terms_of([], []) if each is None else terms_of(each.indices, each.values) for each in sparse]
    )
