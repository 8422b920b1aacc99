"""A collection in an engine, as the service reads one snapshot."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from tercet.cluster.backends.candidates import count_of, matching_documents, proposed_keys
from tercet.cluster.backends.engine import EngineCollection, LateInteraction
from tercet.cluster.backends.narrowing import Reading, narrowed_search
from tercet.cluster.backends.records import (
    could_be_an_id,
    lacking,
    rows_of,
    served_settings,
    snapshot_of,
    stored,
    without_token_vectors,
)
from tercet.index.candidates import Document, Facet, SearchResult
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.documents.boosts import Boost
from tercet.index.documents.conditions import Condition, checked_condition, condition_of
from tercet.index.documents.filters import Filter
from tercet.index.documents.store import encode_id
from tercet.index.languages.sample import NO_LANGUAGES, LanguageSample
from tercet.index.reading.ordered import Order, Place, PlacedDocument
from tercet.index.search.explanation import Explanation
from tercet.index.search.query import CheckedQuery, check_query
from tercet.index.search.retrieval import limits_for
from tercet.index.search.snapshot_query import SnapshotQuery, check_snapshot_query
from tercet.index.segments.rows import DocumentRows
from tercet.index.segments.stored import StoredQuery, StoredRepresentations
from tercet.index.snapshot import Snapshot
from tercet.index.sparse.idf import CollectionIdf
from tercet.models.representations import Float64, Representations


class EngineSnapshot:
    """A collection as it is known since the last look at it, in the place of
    `tercet.index.snapshot.Snapshot`.

    The engine proposes documents and gives what it stores of them; these are put into a snapshot in memory,
    by which they are cut, scored, ordered and explained as those of any collection. Its methods wait for the
    engine, so they are for threads other than the event loop's; any number of these may use it at once.

    documents: how many there were; idf: of all of them; version: what was exported, and how many there were.
    """

    def __init__(
        self, collection: EngineCollection, name: str, documents: int, idf: CollectionIdf | None
    ) -> None:
        """name: by which the collection is served."""
        self.settings: CollectionSettings = served_settings(collection.exported, name)
        self._light = without_token_vectors(self.settings)
        self.documents = documents
        self.idf = idf
        self.version = f"{collection.exported.snapshot}.{documents}"
        self.is_of_several = False
        self._collection = collection

    @property
    def known_languages(self) -> LanguageSample:
        """Nothing is said of them: the engine would have to be asked for texts."""
        return NO_LANGUAGES

    def languages(self) -> LanguageSample:
        """The same."""
        return NO_LANGUAGES

    def answer(self, asked: SnapshotQuery) -> SearchResult:
        """As `Snapshot.answer`. Its dense options are of no use: how the engine searches is for its settings.

        Raises BackendError and NotInBackendError, too.
        """
        check_snapshot_query(asked, self.settings)
        fields = self.settings.fields
        condition = None if asked.filter is None else condition_of(asked.filter, fields)
        limits, _ = limits_for(asked.limits, asked.nearest)
        started = time.perf_counter()
        checked = check_query(asked.query, self.settings)
        if self.idf is not None:
            checked = replace(checked, weights=self.idf.weighted(checked.token_ids, checked.weights))
        with stored(self._collection.name):
            keys = proposed_keys(self._collection, checked, limits, condition, fields)
        collection = self._collection
        if (
            isinstance(collection, LateInteraction)
            and asked.wanted is not None
            and asked.weights.colbert >= 0
        ):
            rows = rows_of(collection.light_rows(keys), self._light, self._collection.name)
            proposed = snapshot_of(rows, self._light, self.version, self.idf)
            retrieved = time.perf_counter()
            found = narrowed_search(proposed, self._reading(checked, collection), asked, asked.wanted)
        else:
            proposed = self._snapshot(self._rows(keys))
            retrieved = time.perf_counter()
            found = proposed.answer(asked)
        ended = time.perf_counter()
        return replace(found, retrieve_seconds=retrieved - started, score_seconds=ended - retrieved)

    def facets(self, wanted: Mapping[str, int], filter: Filter | None = None) -> dict[str, Facet]:
        """Raises NotInBackendError."""
        raise lacking("facets", self._collection.name)

    def explanations(
        self,
        query: Representations,
        document_ids: Sequence[str],
        text: str | None = None,
        collections: Sequence[str | None] | None = None,
    ) -> list[Explanation]:
        """As `Snapshot.explanations`."""
        return self._of(document_ids).explanations(query, document_ids, text)

    def boosts_of(
        self,
        document_ids: Sequence[str],
        boosts: Sequence[Boost],
        collections: Sequence[str | None] | None = None,
    ) -> Float64:
        """As `Snapshot.boosts_of`."""
        return self._of(document_ids).boosts_of(document_ids, boosts)

    def encodings_of(
        self, document_ids: Sequence[str], collections: Sequence[str | None] | None = None
    ) -> int:
        """As `Snapshot.encodings_of`."""
        return self._of(document_ids).encodings_of(document_ids)

    def stored_query(self, id: str, window: int = 0, collection: str | None = None) -> StoredQuery:
        """As `Snapshot.stored_query`."""
        return self._of([id]).stored_query(id, window)

    def examples_query(self, like: Sequence[str], unlike: Sequence[str] = ()) -> StoredQuery:
        """As `Snapshot.examples_query`."""
        return self._of([*like, *unlike]).examples_query(like, unlike)

    def get(self, id: str) -> Document | None:
        """As `Snapshot.get`."""
        return next(iter(self._documents([id])), None)

    def get_all(self, ids: Sequence[str]) -> list[list[Document]]:
        """As `Snapshot.get_all`."""
        found = {document.id: document for document in self._documents(ids)}
        return [[found[id]] if id in found else [] for id in ids]

    def count(self, filter: Filter | None = None) -> int:
        """As `Snapshot.count`, of this moment."""
        condition = self._condition(filter)
        with stored(self._collection.name):
            return count_of(self._collection, condition, self.settings.fields)

    def page(
        self, after: str | None, limit: int, filter: Filter | None = None, after_collection: str | None = None
    ) -> list[Document]:
        """As `Snapshot.page`, but in an order of the engine's own."""
        condition = self._condition(filter)
        if after is not None:
            encode_id(after)
        with stored(self._collection.name):
            return matching_documents(self._collection, after, limit, condition, self.settings.fields)

    def ordered_page(
        self, order: Order, after: Place | None, limit: int, filter: Filter | None = None
    ) -> list[PlacedDocument]:
        """Raises NotInBackendError."""
        raise lacking("order_by", self._collection.name)

    def read(self, placed: PlacedDocument) -> Document:
        """Raises NotInBackendError."""
        raise lacking("order_by", self._collection.name)

    def stored(self, id: str) -> tuple[Document, StoredRepresentations] | None:
        """As `Snapshot.stored`."""
        return self._of([id]).stored(id)

    def _documents(self, ids: Sequence[str]) -> list[Document]:
        return self._collection.documents([id for id in dict.fromkeys(ids) if could_be_an_id(id)])

    def _of(self, ids: Sequence[str]) -> Snapshot:
        """The documents of these ids that are there."""
        possible = [id for id in dict.fromkeys(ids) if could_be_an_id(id)]
        return self._snapshot(self._rows(self._collection.keys_of(possible)))

    def _reading(self, query: CheckedQuery, computing: LateInteraction) -> Reading:
        """How the candidates of a query are read by their ids."""
        keys_of = self._collection.keys_of

        def late(ids: Sequence[str]) -> Float64:
            keys = keys_of(ids)
            found = computing.late(query, keys)
            return np.array([found.get(key, 0.0) for key in keys])

        return Reading(late, lambda ids: self._rows(keys_of(ids)), self._snapshot)

    def _rows(self, keys: Sequence[str]) -> list[DocumentRows]:
        return rows_of(self._collection.rows(keys), self.settings, self._collection.name)

    def _snapshot(self, rows: Sequence[DocumentRows]) -> Snapshot:
        return snapshot_of(rows, self.settings, self.version, self.idf)

    def _condition(self, filter: Filter | None) -> Condition | None:
        return None if filter is None else checked_condition(filter, self.settings.fields)
