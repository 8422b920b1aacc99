"""Qdrant as an engine: a server, or a folder of the local mode."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from qdrant_client import QdrantClient, models

from tercet.cluster.backends.engine import Exported, Proposed, Side
from tercet.cluster.backends.qdrant.filters import narrowed
from tercet.cluster.backends.records import answering, exported_of, stored, without_token_vectors
from tercet.index.candidates import Document
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.documents.conditions import Condition
from tercet.index.search.query import CheckedQuery
from tercet.ingest.ready import ReadyBatch
from tercet.models.representations import SparseRows
from tercet.transfer.description import KEY
from tercet.transfer.qdrant.connection import QdrantPlace, qdrant_errors
from tercet.transfer.qdrant.points import point_id
from tercet.transfer.qdrant.stored import document_of, documents_of
from tercet.transfer.stored import sparse_rows, terms_of

ROWS_AT_ONCE = 64  # each of some hundred token vectors, whose values are objects until they are read
CONTENTS_AT_ONCE = 1000
LEXICAL_AT_ONCE = 2000


class QdrantEngine:
    """See `tercet.cluster.backends.engine.Engine`."""

    def __init__(self, place: QdrantPlace, *, late: bool | None = None) -> None:
        """late: whether the engine computes late interaction, by default where it is a server: its local mode
        does so of all documents, whichever are asked for. Raises BackendError.
        """
        self.name = place.shown
        self._late = place.path is None if late is None else late
        with answering(qdrant_errors(self.name)):
            self._client = place.open()

    def names(self) -> list[str]:
        """See the protocol."""
        with answering(qdrant_errors(self.name)):
            found = [each.name for each in self._client.get_collections().collections]
            return sorted(name for name in found if self._record(name) is not None)

    def open(self, name: str) -> QdrantCollection | None:
        """See the protocol."""
        shown = f"collection {name!r} of {self.name}"
        with answering(qdrant_errors(shown)):
            if not self._client.collection_exists(name):
                return None
            record = self._record(name)
        if record is None:
            return None
        exported = exported_of(record, shown)
        late = self._late and exported.settings.stores_token_vectors
        kind = LateQdrantCollection if late else QdrantCollection
        return kind(self._client, name, shown, exported)

    def close(self) -> None:
        """Lets go of the client."""
        self._client.close()

    def _record(self, name: str) -> Any:
        return (self._client.get_collection(name).config.metadata or {}).get(KEY)


class QdrantCollection:
    """See `tercet.cluster.backends.engine.EngineCollection`. Keys are those of points."""

    def __init__(self, client: QdrantClient, collection: str, name: str, exported: Exported) -> None:
        self._client = client
        self._collection = collection
        self.name = name
        self.exported = exported

    def expresses(self, condition: Condition) -> bool:
        """See the protocol."""
        return narrowed(condition).exact

    def propose(
        self, side: Side, query: CheckedQuery, limit: int, condition: Condition | None, *, metadata: bool
    ) -> list[Proposed]:
        """See the protocol."""
        vector = self._vector(side, query)
        with answering(qdrant_errors(self.name)):
            found = self._client.query_points(
                self._collection,
                query=vector,
                using=side,
                query_filter=_filter(condition),
                limit=limit,
                with_payload=["metadata"] if metadata else False,
            ).points
        return [Proposed(str(each.id), each.score, (each.payload or {}).get("metadata")) for each in found]

    def rows(self, keys: Sequence[str]) -> Iterator[ReadyBatch]:
        """See the protocol."""
        return self._rows(keys, self.exported.settings)

    def keys_of(self, ids: Sequence[str]) -> list[str]:
        """See the protocol."""
        return [point_id(id) for id in ids]

    def documents(self, ids: Sequence[str]) -> list[Document]:
        """See the protocol."""
        found: list[Any] = []
        keys = self.keys_of(ids)
        with answering(qdrant_errors(self.name)):
            for first in range(0, len(keys), CONTENTS_AT_ONCE):
                found += self._client.retrieve(self._collection, keys[first : first + CONTENTS_AT_ONCE])
        with stored(self.name):
            return [document_of(each.payload) for each in found]

    def page(self, after: str | None, limit: int, condition: Condition | None) -> list[Document]:
        """See the protocol. The order is that of points."""
        behind = None if after is None else point_id(after)
        with answering(qdrant_errors(self.name)):
            found, _ = self._client.scroll(
                self._collection,
                scroll_filter=_filter(condition),
                limit=limit + (behind is not None),
                offset=behind,
            )
        with stored(self.name):
            return [document_of(each.payload) for each in found if str(each.id) != behind][:limit]

    def count(self, condition: Condition | None) -> int:
        """See the protocol."""
        with answering(qdrant_errors(self.name)):
            return self._client.count(self._collection, _filter(condition), exact=True).count

    def _rows(self, keys: Sequence[str], settings: CollectionSettings) -> Iterator[ReadyBatch]:
        """What the settings have of these documents."""
        vectors, at_once = ["dense", "sparse"], CONTENTS_AT_ONCE
        if settings.stores_token_vectors:
            vectors, at_once = [*vectors, "colbert"], ROWS_AT_ONCE
        for first in range(0, len(keys), at_once):
            some = keys[first : first + at_once]
            with answering(qdrant_errors(self.name)):
                records = self._client.retrieve(self._collection, some, with_vectors=vectors)
            yield documents_of(records, settings, self.name)

    def _vector(
        self, side: Side, query: CheckedQuery
    ) -> models.SparseVector | list[float] | list[list[float]]:
        if side == "sparse" or query.dense is None:
            return models.SparseVector(indices=query.token_ids.tolist(), values=query.weights.tolist())
        values: list[float] = query.dense.tolist()
        return values if self.exported.settings.window is None else [values]

    def lexical(self) -> Iterator[SparseRows]:
        """See the protocol."""
        offset: Any = None
        while True:
            with answering(qdrant_errors(self.name)):
                records, offset = self._client.scroll(
                    self._collection,
                    limit=LEXICAL_AT_ONCE,
                    offset=offset,
                    with_payload=False,
                    with_vectors=["sparse"],
                )
            with stored(self.name):
                yield _lexical(records)
            if offset is None:
                return


class LateQdrantCollection(QdrantCollection):
    """One of a server, which computes late interaction: see
    `tercet.cluster.backends.engine.LateInteraction`.
    """

    def light_rows(self, keys: Sequence[str]) -> Iterator[ReadyBatch]:
        """See the protocol."""
        return self._rows(keys, without_token_vectors(self.exported.settings))

    def late(self, query: CheckedQuery, keys: Sequence[str]) -> dict[str, float]:
        """See the protocol. Of a document in windows it is over all together, and so ours at least."""
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


def _lexical(records: Sequence[Any]) -> SparseRows:
    sparse = ((record.vector or {}).get("sparse") for record in records)
    return sparse_rows(
        [terms_of([], []) if each is None else terms_of(each.indices, each.values) for each in sparse]
    )


def _filter(condition: Condition | None) -> models.Filter | None:
    return None if condition is None else narrowed(condition).filter
