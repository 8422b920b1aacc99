"""A collection in an engine, as the service reads one snapshot."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from tercet.cluster.backends.candidates import count_of, matching_documents, proposed_keys
from tercet.cluster.backends.engine import EngineCollection, LateInteraction, ProposingQuery, ValueCounts
from tercet.cluster.backends.narrowing import Reading, narrowed_search
from tercet.cluster.backends.records import could_be_an_id, lacking, stored, without_token_vectors
from tercet.cluster.backends.written_rows import term_number
from tercet.index.bm25.query import KnownWords, words_of
from tercet.index.candidates import Document, Facet, FacetValue, SearchResult
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.documents.boosts import Boost
from tercet.index.documents.conditions import Condition, checked_condition, condition_of
from tercet.index.documents.filters import Filter
from tercet.index.documents.store import encode_id
from tercet.index.languages.sample import NO_LANGUAGES, LanguageSample
from tercet.index.reading.ordered import Order, Place, PlacedDocument
from tercet.index.search.explanation import Explanation
from tercet.index.search.query import CheckedQuery, check_facets, check_query
from tercet.index.search.retrieval import limits_for
from tercet.index.search.snapshot_query import SnapshotQuery, check_snapshot_query
from tercet.index.segments.rows import DocumentRows
from tercet.index.segments.segment import Segment
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

    documents: how many there were; idf: of all of them; version: by which this state of them is known.
    """

    def __init__(
        self,
        collection: EngineCollection,
        version: str,
        documents: int,
        idf: CollectionIdf | None = None,
        words: KnownWords | None = None,
    ) -> None:
        """words: what all documents know of words, in a collection with BM25."""
        self.settings: CollectionSettings = collection.settings
        self._light = without_token_vectors(self.settings)
        self.documents = documents
        self.idf = idf
        self.version = version
        self.is_of_several = False
        self._collection = collection
        self._words = words

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
            proposing = self._proposing(checked, asked.text)
            keys = proposed_keys(self._collection, proposing, limits, condition, fields)
        collection = self._collection
        if (
            isinstance(collection, LateInteraction)
            and asked.wanted is not None
            and asked.weights.colbert >= 0
        ):
            proposed = self._snapshot(collection.light_rows(keys), self._light)
            retrieved = time.perf_counter()
            found = narrowed_search(proposed, self._reading(checked, collection), asked, asked.wanted)
        else:
            proposed = self._snapshot(self._collection.rows(keys))
            retrieved = time.perf_counter()
            found = proposed.answer(asked)
        ended = time.perf_counter()
        return replace(found, retrieve_seconds=retrieved - started, score_seconds=ended - retrieved)

    def facets(self, wanted: Mapping[str, int], filter: Filter | None = None) -> dict[str, Facet]:
        """As `Snapshot.facets`, of this moment. Raises NotInBackendError where the engine counts no values,
        or cannot say the filter.
        """
        check_facets(wanted, self.settings.fields)
        collection, condition = self._collection, self._condition(filter)
        if not isinstance(collection, ValueCounts):
            raise lacking("facets", collection.name)
        if condition is not None and not collection.expresses(condition):
            raise lacking("facets with this filter", collection.name)
        facets = {}
        for field, limit in wanted.items():
            counts = collection.values(field, condition)
            ordered = sorted(counts.items(), key=lambda each: (-each[1], str(each[0]).encode()))
            values = [FacetValue(value, count) for value, count in ordered[:limit]]
            facets[field] = Facet(values, len(counts), collection.missing(field, condition))
        return facets

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
        return self._snapshot(self._collection.rows(self._collection.keys_of(possible)))

    def _reading(self, query: CheckedQuery, computing: LateInteraction) -> Reading:
        """How the candidates of a query are read by their ids."""
        keys_of = self._collection.keys_of

        def late(ids: Sequence[str]) -> Float64:
            keys = keys_of(ids)
            found = computing.late(query, keys)
            return np.array([found.get(key, 0.0) for key in keys])

        return Reading(late, lambda ids: self._collection.rows(keys_of(ids)), self._snapshot)

    def _proposing(self, query: CheckedQuery, text: str | None) -> ProposingQuery:
        """What the engine is asked for with a query. text: for BM25, of which numbers stand for terms."""
        words = dict[int, float]()
        if text is not None and self._words is not None:
            terms = words_of(text, self.settings.bm25_language)
            weighed = terms.weighed(self._words(terms.terms))
            for term, weight in zip(weighed.terms, weighed.weights.tolist(), strict=True):
                number = term_number(term.encode())
                words[number] = max(weight, words.get(number, 0.0))
        sparse = dict(zip(query.token_ids.tolist(), query.weights.tolist(), strict=True))
        return ProposingQuery(query.dense, sparse, words)

    def _snapshot(self, rows: Sequence[DocumentRows], settings: CollectionSettings | None = None) -> Snapshot:
        """Some documents in memory, which are scored by what is known of all. settings: of the rows."""
        settings = self.settings if settings is None else settings
        found = Snapshot(self.version, settings, [Segment.in_memory(rows, settings)] if rows else [])
        found.weigh_by(self.idf, self._words)
        return found

    def _condition(self, filter: Filter | None) -> Condition | None:
        return None if filter is None else checked_condition(filter, self.settings.fields)
