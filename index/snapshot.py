"""A published snapshot, opened read-only and searched over all its segments as if they were one; or those of
several collections, searched alike.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from index.bm25.explanation import explain_bm25
from index.bm25.query import Bm25Query, Bm25Statistics
from index.bm25.segment import Bm25Segment
from index.candidates import (
    CandidateLimits,
    DenseOptions,
    Document,
    Facet,
    Page,
    SearchResult,
    Weights,
)
from index.catalog.alike import united_settings
from index.catalog.layout import CollectionLayout
from index.catalog.manifest import Manifest
from index.catalog.settings import CollectionSettings
from index.dense.kinds import Device
from index.documents.boosts import Boost, check_boosts
from index.documents.conditions import Condition, condition_of
from index.documents.filters import Filter, check_filter
from index.documents.store import DocumentStore, encode_id
from index.errors import (
    DamagedIndexError,
    DocumentNotFoundError,
    SearchIndexError,
)
from index.fusion import SIDES, Fusion
from index.scoring import DECIMALS
from index.search.boosts import boosts_at
from index.search.by_id import ById, DocumentPlace
from index.search.choice import Choice
from index.search.examples import check_examples, example_query
from index.search.explanation import Explanation, explain
from index.search.facets import facets_of
from index.search.hits import hits_of
from index.search.late_interaction import late_scores
from index.search.ordered import Order, Place, PlacedDocument, check_order, ordered_page
from index.search.pages import Name, page_of, starts_behind
from index.search.query import (
    CheckedQuery,
    check_facets,
    check_fusion,
    check_group_by,
    check_options,
    check_page,
    check_query,
    check_weights,
)
from index.search.ranking import rank, rank_reciprocally
from index.search.retrieval import Candidates, ids_at, retrieve
from index.segments.parts import rows_in_parts
from index.segments.rows import DocumentRows
from index.segments.segment import Segment
from index.segments.stored import StoredQuery, StoredRepresentations
from index.sparse.idf import CollectionIdf
from index.sparse.term_versions import TermVersion
from models.representations import Float32, Float64, Int64, Representations

EMPTY_NAME = "000000"
SCORED_ROWS = 8192

DEFAULT_WEIGHTS = Weights()
DEFAULT_LIMITS = CandidateLimits()
DEFAULT_OPTIONS = DenseOptions()
FIRST_PAGE = Page()


class Snapshot:
    """One version of a collection. Immutable, so any number of threads may search it at once.

    It goes on answering after a newer one is published: its files stay mapped until it is let go.

    name: of its manifest; version: the same, and the position of a last write that this does not hold. Of
    several collections both have what each has. collections: of each segment, None where there is but one.
    """

    def __init__(
        self,
        name: str,
        settings: CollectionSettings,
        segments: Sequence[Segment],
        position: int | None = None,
        collections: Sequence[str] | None = None,
        terms: TermVersion | None = None,
    ) -> None:
        """position: of the last write that it has, where its manifest does not hold that yet. terms: of that
        moment, for the idf.
        """
        self._collections = collections
        self.name = name
        self.version = name if position is None else f"{name}.{position}"
        self.settings = settings
        self.documents = sum(segment.documents_kept for segment in segments)
        self.idf: CollectionIdf | None = None
        if settings.lexical == "idf":
            statistics = [segment.statistics for segment in segments if segment.statistics is not None]
            self.idf = CollectionIdf(self.documents, statistics, settings.vocabulary_size, terms)
        self._bm25: Bm25Statistics | None = None
        if settings.bm25:
            self._bm25 = Bm25Statistics(settings.bm25_language, settings.bm25_reading, _bm25_parts(segments))
        self._segments: tuple[Segment, ...] | None = tuple(segments)

    @staticmethod
    def open(
        layout: CollectionLayout,
        settings: CollectionSettings,
        name: str,
        device: Device = "cpu",
        former: dict[str, Segment] | None = None,
    ) -> Snapshot:
        """Opens the snapshot of a manifest. Raises DamagedIndexError naming the file at fault.

        former: the `published_segments` of another snapshot with the same settings, on the same device. Those
        that this one has, too, are not opened again; the others are taken out, so that their memory is free.
        """
        manifest = Manifest.read(layout.manifest(name))
        former = {} if former is None else former
        for id in former.keys() - {entry.id for entry in manifest.segments}:
            del former[id]
        if manifest.settings_sha256 != settings.sha256:
            raise DamagedIndexError(
                f"{layout.settings} is not the one that {layout.manifest(name)} was written with; restore it"
            )
        return Snapshot(
            name,
            settings,
            [
                Segment.open(layout, entry, settings, device, former.get(entry.id))
                for entry in manifest.segments
            ],
        )

    @staticmethod
    def empty(settings: CollectionSettings) -> Snapshot:
        """What a collection holds before its first publication."""
        return Snapshot(EMPTY_NAME, settings, [])

    @staticmethod
    def united(alias: str, parts: Sequence[Snapshot]) -> Snapshot:
        """Several collections as one that has the alias's name: its statistics are of all documents, and each
        document names its collection. What has an id in several is there several times, in order of
        collection. Takes microseconds; the segments are those of the parts.

        Raises UnlikeCollectionsError for collections that cannot be searched as one.
        """
        settings = united_settings(alias, [part.settings for part in parts])
        parts = sorted(parts, key=lambda part: part.settings.name)
        opened = [(part.settings.name, segment) for part in parts for segment in part._opened()]
        version = ",".join(f"{part.settings.name}:{part.version}" for part in parts)
        return Snapshot(
            version,
            settings,
            [segment for _, segment in opened],
            collections=[name for name, _ in opened],
        )

    def undivided(self) -> Snapshot:
        """As of a collection without windows, over the same memory, where no document has more than one."""
        segments = self._opened()
        if any(segment.encodings > len(segment) for segment in segments):
            return self
        whole = [replace(segment, windows=None) for segment in segments]
        return Snapshot(self.name, replace(self.settings, window=None), whole, collections=self._collections)

    @property
    def is_of_several(self) -> bool:
        """Whether it is of several collections."""
        return self._collections is not None

    def close(self) -> None:
        """Lets go of the files; searches under way still finish, later ones raise SearchIndexError."""
        self._segments = None
        if self.idf is not None:
            self.idf.close()
        if self._bm25 is not None:
            self._bm25.close()

    def published_segments(self) -> dict[str, Segment]:
        """The segments that manifests name, by id, for a later snapshot to take over; none once closed."""
        return {segment.entry.id: segment for segment in self._segments or () if segment.entry is not None}

    def search(
        self,
        query: Representations,
        *,
        text: str | None = None,
        top_k: int = 10,
        weights: Weights = DEFAULT_WEIGHTS,
        candidates: CandidateLimits = DEFAULT_LIMITS,
        filter: Filter | None = None,
        dense_options: DenseOptions = DEFAULT_OPTIONS,
        page: Page = FIRST_PAGE,
        group_by: str | None = None,
        boosts: Sequence[Boost] = (),
        fusion: Fusion = "sum",
        without: Sequence[str] = (),
        contents: bool = True,
    ) -> SearchResult:
        """The `top_k` candidates of highest score, every one scored in all three ways.

        text: the query itself, for BM25; without it, or without BM25, a hit has no such score. page: which of
        the ordered candidates are wanted. group_by: a declared keyword field, of each value of which the best
        candidate alone is a hit, and every one without a value. boosts: what is added to the scores of
        candidates; no other documents are found for them. fusion: whether a score is the weighted sum, or
        that of reciprocal ranks among the candidates. without: ids of documents that are none. contents:
        without them no stored text is read, and a hit's document has its id alone.
        Raises InvalidQueryError for a query, filter or option that this collection cannot answer.
        """
        candidates = candidates.used(weights)
        check_options(top_k, candidates, dense_options)
        check_page(page)
        check_group_by(group_by, self.settings.fields)
        check_weights(query, text, weights, self.settings)
        check_boosts(boosts, self.settings.fields)
        check_fusion(fusion)
        if without:
            candidates = candidates.with_more(len(without))
        nearest = None
        if weights.dense_alone and page.after is None and group_by is None and not boosts:
            nearest = page.offset + top_k + len(without)
        started = time.perf_counter()
        checked, segments = self._checked(query, text), self._opened()
        condition = self._condition(filter)
        found = retrieve(segments, checked, candidates, dense_options, condition, nearest)
        if without:
            found = self._left(found, without)
        retrieved = time.perf_counter()
        sides = self._sides
        if boosts:
            added = boosts_at(segments, found.segments, found.rows, boosts, self.settings.fields)
            found, sides = replace(found, boost=np.round(added.sum(axis=0), DECIMALS)), SIDES + 1
        choice = Choice(segments, found, top_k, page, group_by, self._collections)
        ranking = rank_reciprocally if fusion == "rrf" else rank
        ranked = ranking(segments, found, checked, weights, sides, choice)
        hits = hits_of(
            segments, found, ranked, checked, weights, contents=contents, collections=self._collections
        )
        scored = time.perf_counter()
        return SearchResult(hits, self.version, retrieved - started, scored - retrieved)

    def facets(self, wanted: Mapping[str, int], filter: Filter | None = None) -> dict[str, Facet]:
        """So many of the commonest values of declared keyword and boolean fields, counted over all documents
        that the filter allows, and not over the hits of a search.

        Raises InvalidQueryError for a filter or field that this collection cannot answer.
        """
        check_facets(wanted, self.settings.fields)
        return facets_of(self._opened(), wanted, self._condition(filter))

    def retrieve(
        self,
        query: Representations,
        *,
        text: str | None = None,
        candidates: CandidateLimits = DEFAULT_LIMITS,
        filter: Filter | None = None,
        dense_options: DenseOptions = DEFAULT_OPTIONS,
    ) -> Candidates:
        """The candidates alone, before late interaction: best of each side over all segments.

        text: the query itself, where BM25 shall propose some, too.
        """
        checked, segments = self._checked(query, text), self._opened()
        return retrieve(segments, checked, candidates, dense_options, self._condition(filter))

    def score(
        self, query: Representations, found: Candidates, text: str | None = None
    ) -> tuple[list[str], Float64]:
        """Ids and scores float64[K, S] (dense, sparse, colbert) of what `retrieve` found: those of a hit.

        S is 4 in a collection with BM25, else 3. A side that is not in the query or not stored scores 0.
        """
        checked, segments = self._checked(query, text), self._opened()
        ids = ids_at(segments, found.segments, found.rows).take(np.arange(len(found)))
        late = late_scores(segments, found, checked).best()
        return [id.decode() for id in ids], found.components(late, self._sides)

    def score_all(self, query: Representations, text: str | None = None) -> tuple[list[str], Float32]:
        """Every document's id and scores float32[N, S] (dense, sparse, colbert), without candidates.

        S is 4 in a collection with BM25, else 3. A side that is not in the query or not stored scores 0.
        """
        checked = self._checked(query, text)
        ids: list[str] = []
        parts: list[Float64] = [np.empty((0, self._sides))]
        for place, segment in enumerate(self._opened()):
            step = max(1, SCORED_ROWS * len(segment) // max(1, segment.encodings))
            kept = segment.rows_kept()
            for start in range(0, len(kept), step):
                rows = kept[start : start + step]
                ids.extend(segment.documents.ids_of(rows))
                dense = segment.dense_scores(checked.dense, rows)
                sparse = segment.lexical_scores(checked.token_ids, checked.weights, rows)
                colbert = segment.colbert_scores(checked.colbert, rows)
                bm25 = segment.bm25_scores(checked.bm25_part(place), rows)
                parts.append(self._stacked(dense, sparse, colbert, bm25))
        return ids, np.concatenate(parts).astype(np.float32)

    def get(self, id: str) -> Document | None:
        """The stored document of an id, or None.

        Raises AmbiguousDocumentError where several of the collections that this is of have one.
        """
        documents = self._by_id()
        found = documents.find(id)
        return None if found is None else documents.document(found)

    def get_all(self, id: str) -> list[Document]:
        """The stored documents of an id: one at most of each collection."""
        documents = self._by_id()
        return [documents.document(place) for place in documents.all(id)]

    def count(self, filter: Filter | None = None) -> int:
        """How many documents a filter over declared fields allows; all of them without one.

        Raises InvalidQueryError for a filter that this collection cannot answer.
        """
        condition = self._condition(filter)
        allowed = [(segment, segment.allowed(condition)) for segment in self._opened()]
        return sum(segment.documents_kept if rows is None else len(rows) for segment, rows in allowed)

    def page(
        self, after: str | None, limit: int, filter: Filter | None = None, after_collection: str | None = None
    ) -> list[Document]:
        """Up to `limit` documents in order of their ids' UTF-8 bytes, from the first that follows `after` on.

        filter: over declared fields; the documents that it allows. after_collection: that of `after`, where
        this is of several; documents of its id in later ones follow. Raises InvalidQueryError for a filter
        that cannot be answered, InvalidDocumentError for an `after` that no document can have as its id.
        """
        name, segments = None if after is None else Name(encode_id(after), after_collection), self._opened()
        starts = starts_behind(name, len(segments), self._collections)
        found = page_of(segments, starts, limit, self._condition(filter))
        return [self._by_id().document(place) for place in found]

    def ordered_page(
        self, order: Order, after: Place | None, limit: int, filter: Filter | None = None
    ) -> list[PlacedDocument]:
        """Up to `limit` documents in the order of a declared field, from the first that follows a place on.

        filter: as for `page`. Raises InvalidQueryError for one, or a field, that this collection has not.
        """
        check_order(order, self.settings.fields)
        condition = self._condition(filter)
        return ordered_page(self._opened(), order, after, limit, condition, self._collections)

    def read(self, placed: PlacedDocument) -> Document:
        """The document of a place. Raises DamagedIndexError."""
        return self._by_id().document((placed.segment, placed.row))

    def rows(self, documents: int, tokens: int) -> Iterator[DocumentRows]:
        """All documents as they are stored, segment by segment, in parts.

        documents, tokens: of a part at most; a document of more token vectors is a part by itself.
        """
        for segment in self._opened():
            yield from rows_in_parts(segment, segment.rows_kept(), documents, tokens)

    def sizes(self) -> Iterator[tuple[DocumentStore, Int64, Int64]]:
        """Of each segment its documents, their rows int64[n] without deleted ones, and how many token vectors
        each has, int64[n]; 1 where they are not stored.
        """
        for segment in self._opened():
            rows = segment.rows_kept()
            yield segment.documents, rows, segment.tokens_of(rows)

    def representations_of(self, id: str) -> StoredRepresentations | None:
        """What is stored of a document's representations; None where it is not there. Raises as `get`."""
        found = self._by_id().find(id)
        return None if found is None else self._stored(found)

    def stored_query(self, id: str, window: int = 0, collection: str | None = None) -> StoredQuery:
        """What is stored of a document as a query for others like it: of its only text, or of one window.

        collection: the document's, where this is of several.
        Raises DocumentNotFoundError, InvalidQueryError where it has no such window, and as `get`.
        """
        documents = self._by_id()
        found = documents.find(id, collection)
        if found is None:
            raise DocumentNotFoundError(f"collection {self.settings.name!r} has no document {id[:600]!r}")
        return StoredQuery.of(documents.document(found), self._stored(found), window)

    def examples_query(self, like: Sequence[str], unlike: Sequence[str] = ()) -> StoredQuery:
        """A query for documents like some, unlike others: see `index/search/examples.py`. Its text is theirs
        that it shall be like, one after the other.

        Raises DocumentNotFoundError, which names those that are not there, InvalidQueryError for no ids, too
        many, or one in both, and as `get`.
        """
        check_examples(like, unlike)
        found = self._by_id().found([*like, *unlike])
        wanted, unwanted = (dict.fromkeys(map(found.__getitem__, ids)) for ids in (like, unlike))
        return example_query(self._opened(), [*wanted], [*unwanted])

    def explain(self, query: Representations, document_id: str, text: str | None = None) -> Explanation:
        """Matching terms and token alignment of a document, as `explanations` gives them."""
        (explanation,) = self.explanations(query, [document_id], text)
        return explanation

    def explanations(
        self,
        query: Representations,
        document_ids: Sequence[str],
        text: str | None = None,
        collections: Sequence[str | None] | None = None,
    ) -> list[Explanation]:
        """Matching terms and token alignment of each document. Raises InvalidQueryError for an unknown id.

        text: the query itself, for the terms of BM25. collections: of the documents, where this is
        of several.
        """
        places = self._by_id().places(document_ids, collections)
        segments, checked, words = self._opened(), check_query(query, self.settings), self._words(text)
        found = []
        for place, row in places:
            explanation = explain(segments[place], row, checked, self.idf)
            part = segments[place].bm25
            if words is not None and part is not None:
                explanation = replace(explanation, bm25=explain_bm25(part, row, words, place))
            found.append(explanation)
        return found

    def boosts_of(
        self,
        document_ids: Sequence[str],
        boosts: Sequence[Boost],
        collections: Sequence[str | None] | None = None,
    ) -> Float64:
        """What each of B boosts adds to the scores of K documents: float64[B, K], which add up to theirs.

        collections: of the documents, where this is of several. Raises InvalidQueryError for an unknown id,
        or boosts that this collection cannot answer.
        """
        check_boosts(boosts, self.settings.fields)
        places, rows = np.array(self._by_id().places(document_ids, collections), np.int64).reshape(-1, 2).T
        return boosts_at(self._opened(), places, rows, boosts, self.settings.fields)

    def encodings_of(
        self, document_ids: Sequence[str], collections: Sequence[str | None] | None = None
    ) -> int:
        """The encoded texts of these documents: all their windows, or one of each in a collection without.

        collections: of the documents, where this is of several. Raises InvalidQueryError for an unknown id.
        """
        segments = self._opened()
        places = self._by_id().places(document_ids, collections)
        return sum(segments[place].encodings_of(row) for place, row in places)

    def _checked(self, query: Representations, text: str | None) -> CheckedQuery:
        """The query in the collection's terms: its lexical weights times the idf, where there is one, and the
        words of its text, where there is BM25.
        """
        checked = check_query(query, self.settings)
        if self.idf is not None:
            checked = replace(checked, weights=self.idf.weighted(checked.token_ids, checked.weights))
        words = self._words(text)
        return checked if words is None else replace(checked, bm25=words)

    def _words(self, text: str | None) -> Bm25Query | None:
        """The words of a query's text; None without one, or without BM25."""
        if self._bm25 is None or text is None:
            return None
        return self._bm25.query(text)

    def _left(self, found: Candidates, without: Sequence[str]) -> Candidates:
        """The candidates but for the documents of these ids, in whichever collection."""
        kept = np.ones(len(found), np.bool_)
        for place, row in chain.from_iterable(map(self._by_id().all, without)):
            kept &= (found.segments != place) | (found.rows != row)
        return found.take(np.flatnonzero(kept))

    def _opened(self) -> tuple[Segment, ...]:
        if self._segments is None:
            raise SearchIndexError(f"snapshot {self.name} of {self.settings.name!r} is closed; open another")
        return self._segments

    def _by_id(self) -> ById:
        return ById(self.name, self.settings.name, self._opened(), self._collections)

    def _stored(self, place: DocumentPlace) -> StoredRepresentations:
        return StoredRepresentations.of(self._opened()[place[0]].take(np.array([place[1]])))

    def _condition(self, filter: Filter | None) -> Condition | None:
        """A filter as segments take it. Raises InvalidQueryError where it does not fit the fields."""
        if filter is None:
            return None
        check_filter(filter, self.settings.fields)
        return condition_of(filter, self.settings.fields)

    @property
    def _sides(self) -> int:
        return 3 if self._bm25 is None else 4

    def _stacked(self, *sides: Float64) -> Float64:
        """The scores float64[K, S] of the sides that the collection has."""
        return np.stack(sides[: self._sides], axis=1)


def _bm25_parts(segments: Sequence[Segment]) -> list[Bm25Segment]:
    """The BM25 parts of the segments of a collection that has BM25."""
    return [segment.bm25 for segment in segments if segment.bm25 is not None]
