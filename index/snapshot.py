"""A published snapshot, opened read-only and searched over all its segments as if they were one; or those of
several collections, searched alike.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import chain
from operator import attrgetter

import numpy as np

from tercet.index.bm25.explanation import explain_bm25
from tercet.index.bm25.query import Bm25Query, Bm25Statistics, KnownWords, WeighedWords, WordCounts
from tercet.index.candidates import CandidateLimits, DenseOptions, Facet, Page, SearchResult, Weights
from tercet.index.catalog.alike import united_settings
from tercet.index.catalog.layout import CollectionLayout
from tercet.index.catalog.manifest import Manifest, segment_record
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.dense.kinds import Device
from tercet.index.documents.boosts import Boost, check_boosts
from tercet.index.documents.conditions import condition_of
from tercet.index.documents.filters import Filter
from tercet.index.errors import DamagedIndexError, InvalidQueryError
from tercet.index.fusion import SIDES, Fusion
from tercet.index.languages.sample import LanguageSample, sample_of
from tercet.index.reading.documents import StoredDocuments
from tercet.index.runs import runs
from tercet.index.scoring import DECIMALS
from tercet.index.search.boosts import boosts_at
from tercet.index.search.bounds import QuickScores, bounds_of
from tercet.index.search.choice import Choice
from tercet.index.search.exact_scores import Candidates, scored
from tercet.index.search.explanation import Explanation, explain
from tercet.index.search.facet_parts import FieldCounts, WantedValues, counts_of
from tercet.index.search.facets import facets_of
from tercet.index.search.hits import hits_of
from tercet.index.search.late_interaction import late_scores
from tercet.index.search.query import CheckedQuery, check_facets, check_options, check_query, check_weights
from tercet.index.search.ranking import rank, rank_reciprocally
from tercet.index.search.retrieval import numbers_of, retrieve
from tercet.index.search.shard_search import ShardQuery, ShardSearch
from tercet.index.search.snapshot_query import (
    DEFAULT_LIMITS,
    DEFAULT_OPTIONS,
    DEFAULT_WEIGHTS,
    FIRST_PAGE,
    LEADERS,
    SnapshotQuery,
    check_snapshot_query,
)
from tercet.index.segments.segment import Segment
from tercet.index.sparse.idf import CollectionIdf, GivenIdf
from tercet.index.sparse.term_versions import TermVersion
from tercet.models.representations import OUTPUTS, Float32, Float64, Int64, Representations

SCORED_ROWS = 8192


class Snapshot(StoredDocuments):
    """One version of a collection. Immutable, so any number of threads may search it at once.

    It goes on answering after a newer one is published: its files stay mapped until it is let go.

    name: of its manifest; version: the same, and the position of a last write that this does not hold. Of
    several collections both have what each has. position: of the last write that it has; 0 of several.
    collections: of each segment, None where there is but one.
    """

    def __init__(
        self,
        name: str,
        settings: CollectionSettings,
        segments: Sequence[Segment],
        position: int | None = None,
        collections: Sequence[str] | None = None,
        terms: TermVersion | None = None,
        reached: int = 0,
    ) -> None:
        """position: of the last write that it has, where its manifest does not hold that yet. terms: of that
        moment, for the idf. reached: the position of the last write, in its manifest or not.
        """
        super().__init__(name, settings, segments, collections)
        self.position = reached
        self.version = name if position is None else f"{name}.{position}"
        self.idf: CollectionIdf | None = None
        if settings.lexical == "idf":
            statistics = [segment.statistics for segment in segments if segment.statistics is not None]
            self.idf = CollectionIdf(self.documents, statistics, settings.vocabulary_size, terms)
        self.known_languages: LanguageSample | None = None
        self._bm25: Bm25Statistics | None = None
        if settings.bm25:
            words = [segment.bm25 for segment in segments if segment.bm25 is not None]
            self._bm25 = Bm25Statistics(settings.bm25_language, words)

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
            reached=manifest.ledger_position,
        )

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

    def weigh_by(self, idf: CollectionIdf | None, words: KnownWords | None) -> None:
        """Has terms and words weighed by what is known of a whole collection, of which this has some
        documents; before anything is searched.
        """
        self.idf = idf
        if self._bm25 is not None:
            self._bm25.known = words

    def undivided(self) -> Snapshot:
        """As of a collection without windows, over the same memory, where no document has more than one."""
        segments = self._opened()
        if any(segment.encodings > len(segment) for segment in segments):
            return self
        whole = [replace(segment, windows=None) for segment in segments]
        settings = replace(self.settings, window=None)
        return Snapshot(self.name, settings, whole, collections=self._collections, reached=self.position)

    def close(self) -> None:
        """Lets go of the files; searches under way still finish, later ones raise SearchIndexError."""
        super().close()
        if self.idf is not None:
            self.idf.close()
        if self._bm25 is not None:
            self._bm25.close()

    def content(self) -> str | None:
        """A name that it shares with any snapshot, wherever that is, of the same segments of which the same
        documents are deleted; None where documents are in memory alone.
        """
        settings, segments = self.settings, self._opened()
        parts: list[object] = [settings.sha256, sorted(settings.fields.items()), self._collections]
        entries = [segment.entry for segment in segments if segment.entry is not None]
        if len(entries) < len(segments):
            return None
        for segment, entry in zip(segments, entries, strict=True):
            deleted = sha256(segment.rows_deleted().astype("<i8").tobytes()).hexdigest()
            parts.append((segment_record(replace(entry, deletes=None)), deleted))
        return sha256(json.dumps(parts).encode()).hexdigest()

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
        """The hits of one query: see `SnapshotQuery` and `answer`."""
        return self.answer(
            SnapshotQuery(
                query,
                text,
                top_k,
                weights,
                candidates,
                filter,
                dense_options,
                page,
                group_by,
                boosts,
                fusion,
                without,
                contents,
            )
        )

    def answer(self, request: SnapshotQuery) -> SearchResult:
        """The hits. Raises InvalidQueryError for a query, filter or option that this collection cannot
        answer.
        """
        check_snapshot_query(request, self.settings)
        fields, weights = self.settings.fields, request.weights
        started = time.perf_counter()
        checked, segments = self._checked(request.query, request.text), self._opened()
        candidates = retrieve(
            segments,
            checked,
            request.limits,
            request.dense_options,
            None if request.filter is None else condition_of(request.filter, fields),
            request.nearest,
            everything=self._compares_everything,
        )
        if request.without:
            candidates = self._left(candidates, request.without)
        retrieved = time.perf_counter()
        sides, quick, leaders = self._sides, QuickScores(segments, candidates, checked), None
        if request.leading is not None:
            choice = Choice.among(segments, candidates, LEADERS, FIRST_PAGE, None, self._collections)
            bounds = bounds_of(quick, candidates, request.leading, sides, choice)
            ranked = rank(segments, candidates, checked, request.leading, sides, choice, bounds)
            leaders = ranked.components[:, : len(OUTPUTS)]
        if request.boosts:
            added = boosts_at(segments, candidates.segments, candidates.rows, request.boosts, fields)
            candidates, sides = replace(candidates, boost=np.round(added.sum(axis=0), DECIMALS)), SIDES + 1
        choice = Choice.among(
            segments, candidates, request.top_k, request.page, request.group_by, self._collections
        )
        if request.fusion == "rrf":
            ranked = rank_reciprocally(segments, candidates, checked, weights, sides, choice)
        else:
            bounds = bounds_of(quick, candidates, weights, sides, choice)
            ranked = rank(segments, candidates, checked, weights, sides, choice, bounds)
        hits = hits_of(
            segments,
            ranked,
            checked,
            weights,
            contents=request.contents,
            collections=self._collections,
        )
        ended = time.perf_counter()
        return SearchResult(hits, self.version, retrieved - started, ended - retrieved, leaders=leaders)

    def shard_search(self, request: ShardQuery) -> ShardSearch:
        """This snapshot's part of a search over several shards. Raises InvalidQueryError as `search`."""
        text = None if request.words is None else ""
        check_options(1, request.limits, request.options)
        check_weights(request.query, text, request.weights, self.settings)
        check_boosts(request.boosts, self.settings.fields)
        checked, segments = check_query(request.query, self.settings), self._opened()
        if request.words is not None and self._bm25 is not None:
            checked = replace(checked, bm25=self._bm25.query_of(request.words))
        without = np.array([*chain.from_iterable(map(self._all, request.without))], np.int64).reshape(-1, 2)
        return ShardSearch(
            segments,
            checked,
            request,
            self._condition(request.filter),
            self.settings.fields,
            self._sides,
            numbers_of(without[:, 0], without[:, 1]),
            everything=self._compares_everything,
            collections=self._collections,
        )

    def languages(self) -> LanguageSample:
        """In which languages its documents are, detected when it is first asked for."""
        if self.known_languages is None:
            self.known_languages = sample_of([(each.languages, each.kept) for each in self._opened()])
        return self.known_languages

    def word_counts(self, words: Sequence[str]) -> WordCounts:
        """What the documents know of some words of BM25. Raises InvalidQueryError without BM25."""
        if self._bm25 is None:
            raise InvalidQueryError(f"collection {self.settings.name!r} has no BM25")
        return self._bm25.counts_of(words)

    def facets(self, wanted: Mapping[str, int], filter: Filter | None = None) -> dict[str, Facet]:
        """So many of the commonest values of declared keyword and boolean fields, counted over all documents
        that the filter allows, and not over the hits of a search.

        Raises InvalidQueryError for a filter or field that this collection cannot answer.
        """
        check_facets(wanted, self.settings.fields)
        return facets_of(self._opened(), wanted, self._condition(filter))

    def field_counts(self, wanted: Sequence[WantedValues], filter: Filter | None = None) -> list[FieldCounts]:
        """Values of each field, counted as for `facets`, which it raises as."""
        check_facets({values.field: 1 for values in wanted}, self.settings.fields)
        return counts_of(self._opened(), wanted, self._condition(filter))

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
        self, query: Representations, candidates: Candidates, text: str | None = None
    ) -> tuple[list[str], Float64]:
        """Ids and scores float64[K, S] (dense, sparse, colbert) of candidates, as hits have them.

        S is 4 in a collection with BM25, else 3. A side that is not in the query or not stored scores 0.
        """
        checked, segments = self._checked(query, text), self._opened()
        ids = self._ids_at(candidates.segments, candidates.rows)
        return ids, self._components(checked, segments, candidates)

    def score_all(self, query: Representations, text: str | None = None) -> tuple[list[str], Float32]:
        """Every document's id and scores float32[N, S] (dense, sparse, colbert), without candidates.

        S is 4 in a collection with BM25, else 3. A side that is not in the query or not stored scores 0.
        """
        checked, segments = self._checked(query, text), self._opened()
        kept = [segment.rows_kept() for segment in segments]
        ordinals = np.repeat(np.arange(len(segments)), [len(rows) for rows in kept])
        rows = np.concatenate([np.empty(0, np.int64), *kept])
        encodings, documents = (sum(map(of, segments)) for of in (attrgetter("encodings"), len))
        step = max(1, SCORED_ROWS * documents // max(1, encodings))
        parts: list[Float64] = [np.empty((0, self._sides))]
        for start in range(0, len(rows), step):
            some = slice(start, start + step)
            candidates = scored(segments, checked, ordinals[some], rows[some])
            parts.append(self._components(checked, segments, candidates))
        return self._ids_at(ordinals, rows), np.concatenate(parts).astype(np.float32)

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
        return self._explained(query, document_ids, collections, self.idf, self._words(text))

    def shard_explanations(
        self,
        query: Representations,
        document_ids: Sequence[str],
        collections: Sequence[str | None] | None,
        idf: GivenIdf | None,
        words: WeighedWords | None,
    ) -> list[Explanation]:
        """Explains scores by an idf and words that were counted over all shards."""
        weighed = None if words is None or self._bm25 is None else self._bm25.query_of(words)
        return self._explained(query, document_ids, collections, idf, weighed)

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
        ordinals, rows = np.array(self._addresses(document_ids, collections), np.int64).reshape(-1, 2).T
        return boosts_at(self._opened(), ordinals, rows, boosts, self.settings.fields)

    def _explained(
        self,
        query: Representations,
        document_ids: Sequence[str],
        collections: Sequence[str | None] | None,
        idf: CollectionIdf | GivenIdf | None,
        words: Bm25Query | None,
    ) -> list[Explanation]:
        addresses = self._addresses(document_ids, collections)
        segments, checked = self._opened(), check_query(query, self.settings)
        explanations = []
        for ordinal, row in addresses:
            explanation = explain(segments, ordinal, row, checked, idf)
            if words is not None:
                explanation = replace(explanation, bm25=explain_bm25(row, words, ordinal))
            explanations.append(explanation)
        return explanations

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

    def _left(self, candidates: Candidates, without: Sequence[str]) -> Candidates:
        """The candidates but for the documents of these ids, in whichever collection."""
        kept = np.ones(len(candidates), np.bool_)
        for ordinal, row in chain.from_iterable(map(self._all, without)):
            kept &= (candidates.segments != ordinal) | (candidates.rows != row)
        return candidates.take(np.flatnonzero(kept))

    def _components(
        self, query: CheckedQuery, segments: Sequence[Segment], candidates: Candidates
    ) -> Float64:
        """All scores of candidates, float64[K, S]."""
        late = late_scores(segments, query, candidates.segments, candidates.rows).best()
        return candidates.components(late, self._sides)

    def _ids_at(self, ordinals: Int64, rows: Int64) -> list[str]:
        segments = self._opened()
        return [id for ordinal, run in runs(ordinals) for id in segments[ordinal].documents.ids_of(rows[run])]

    @property
    def _compares_everything(self) -> bool:
        """Token vectors propose nothing: without another side all documents are compared."""
        return self.settings.sides == ("colbert",)

    @property
    def _sides(self) -> int:
        return 3 if self._bm25 is None else 4
