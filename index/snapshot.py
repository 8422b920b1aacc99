"""A published snapshot, opened read-only and searched over all its segments as if they were one."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from index.blas import one_blas_thread
from index.candidates import (
    CandidateLimits,
    DenseOptions,
    Document,
    Hit,
    Scores,
    SearchResult,
    Weights,
)
from index.dense import Device
from index.documents import encode_id
from index.errors import DamagedIndexError, InvalidDocumentError, InvalidQueryError, SearchIndexError
from index.explanation import Explanation, explain
from index.filters import Filter, check_filter
from index.fusion import best, weighted_sum
from index.idf import CollectionIdf
from index.layout import CollectionLayout
from index.manifest import CollectionSettings, Manifest
from index.query import CheckedQuery, check_options, check_query, check_weights
from index.retrieval import Candidates, ids_at, retrieve, runs
from index.scoring import Float64
from index.segment import Segment
from models.representations import Float32, Representations

EMPTY_NAME = "000000"
SCORED_ROWS = 8192
# Bound on the difference between float32 and float64 late interaction of vectors of unit length.
QUICK_ERROR = 1e-4


DEFAULT_WEIGHTS = Weights()
DEFAULT_LIMITS = CandidateLimits()
DEFAULT_OPTIONS = DenseOptions()


class Snapshot:
    """One version of a collection. Immutable, so any number of threads may search it at once.

    It goes on answering after a newer one is published: its files stay mapped until it is let go.
    """

    def __init__(self, name: str, settings: CollectionSettings, segments: Sequence[Segment]) -> None:
        self.name = name
        self.settings = settings
        self.documents = sum(len(segment) for segment in segments)
        self.idf: CollectionIdf | None = None
        if settings.lexical == "idf":
            statistics = [segment.statistics for segment in segments if segment.statistics is not None]
            self.idf = CollectionIdf.of(self.documents, statistics, settings.vocabulary_size)
        self._segments: tuple[Segment, ...] | None = tuple(segments)

    @staticmethod
    def open(
        layout: CollectionLayout, settings: CollectionSettings, name: str, device: Device = "cpu"
    ) -> Snapshot:
        """Opens the snapshot of a manifest. Raises DamagedIndexError naming the file at fault."""
        manifest = Manifest.read(layout.manifest(name))
        if manifest.settings_sha256 != settings.sha256:
            raise DamagedIndexError(
                f"{layout.settings} is not the one that {layout.manifest(name)} was written with; restore it"
            )
        return Snapshot(
            name,
            settings,
            [
                Segment.open(layout.segments / entry.id, entry, settings, device)
                for entry in manifest.segments
            ],
        )

    @staticmethod
    def empty(settings: CollectionSettings) -> Snapshot:
        """What a collection holds before its first publication."""
        return Snapshot(EMPTY_NAME, settings, [])

    def close(self) -> None:
        """Lets go of the files; searches under way still finish, later ones raise SearchIndexError."""
        self._segments = None

    @one_blas_thread
    def search(
        self,
        query: Representations,
        *,
        top_k: int = 10,
        weights: Weights = DEFAULT_WEIGHTS,
        candidates: CandidateLimits = DEFAULT_LIMITS,
        filter: Filter | None = None,
        dense_options: DenseOptions = DEFAULT_OPTIONS,
    ) -> SearchResult:
        """The `top_k` candidates of highest weighted sum, every one scored in all three ways.

        Raises InvalidQueryError for a query, filter or option that this collection cannot answer.
        """
        check_options(top_k, candidates, dense_options)
        check_weights(query, weights, self.settings)
        checked, segments = self._checked(query), self._opened()
        started = time.perf_counter()
        found = self._retrieve(segments, checked, candidates, dense_options, filter)
        retrieved = time.perf_counter()
        hits = self._rank(segments, found, checked, weights, top_k)
        scored = time.perf_counter()
        return SearchResult(hits, self.name, retrieved - started, scored - retrieved)

    def retrieve(
        self,
        query: Representations,
        *,
        candidates: CandidateLimits = DEFAULT_LIMITS,
        filter: Filter | None = None,
        dense_options: DenseOptions = DEFAULT_OPTIONS,
    ) -> Candidates:
        """The candidates alone, before late interaction: best of each side over all segments."""
        checked, segments = self._checked(query), self._opened()
        return self._retrieve(segments, checked, candidates, dense_options, filter)

    @one_blas_thread
    def score(self, query: Representations, found: Candidates) -> tuple[list[str], Float64]:
        """Ids and scores float64[K, 3] (dense, sparse, colbert) of what `retrieve` found: those of a hit.

        A side that is not in the query or not stored scores 0.
        """
        checked, segments = self._checked(query), self._opened()
        ids = [id.decode() for id in ids_at(segments, found.segments, found.rows)]
        return ids, _components(segments, found, checked)

    @one_blas_thread
    def score_all(self, query: Representations) -> tuple[list[str], Float32]:
        """Every document's id and scores float32[N, 3] (dense, sparse, colbert), without candidates.

        A side that is not in the query or not stored scores 0.
        """
        checked = self._checked(query)
        ids: list[str] = []
        parts: list[Float64] = [np.empty((0, 3))]
        for segment in self._opened():
            for start in range(0, len(segment), SCORED_ROWS):
                rows = np.arange(start, min(start + SCORED_ROWS, len(segment)), dtype=np.int64)
                ids.extend(segment.documents.ids_of(rows))
                dense = segment.dense_scores(checked.dense, rows)
                sparse = segment.lexical_scores(checked.token_ids, checked.weights, rows)
                colbert = segment.colbert_scores(checked.colbert, rows, precise=False)
                parts.append(np.stack([dense, sparse, colbert], axis=1))
        return ids, np.concatenate(parts).astype(np.float32)

    def get(self, id: str) -> Document | None:
        """The stored document of an id, or None."""
        found = self._find(id)
        return None if found is None else found[0].documents.get(found[1])

    @one_blas_thread
    def explain(self, query: Representations, document_id: str) -> Explanation:
        """Matching terms and token alignment of a document. Raises InvalidQueryError for an unknown id."""
        found = self._find(document_id)
        if found is None:
            raise InvalidQueryError(
                f"document {document_id[:80]!r} is not in snapshot {self.name} of {self.settings.name!r}"
            )
        return explain(*found, check_query(query, self.settings), self.idf)

    def _checked(self, query: Representations) -> CheckedQuery:
        """The query in the collection's terms: its lexical weights times the idf, where there is one."""
        checked = check_query(query, self.settings)
        if self.idf is None:
            return checked
        return replace(checked, weights=self.idf.weighted(checked.token_ids, checked.weights))

    def _opened(self) -> tuple[Segment, ...]:
        if self._segments is None:
            raise SearchIndexError(f"snapshot {self.name} of {self.settings.name!r} is closed; open another")
        return self._segments

    def _find(self, identifier: str) -> tuple[Segment, int] | None:
        try:
            encoded = encode_id(identifier)
        except InvalidDocumentError:
            return None  # no document can have this id
        for segment in self._opened():
            row = segment.documents.find(encoded)
            if row is not None:
                return segment, row
        return None

    def _retrieve(
        self,
        segments: Sequence[Segment],
        query: CheckedQuery,
        candidates: CandidateLimits,
        dense_options: DenseOptions,
        filter: Filter | None,
    ) -> Candidates:
        if filter is not None:
            check_filter(filter, self.settings.fields)
        return retrieve(segments, query, candidates, dense_options, filter)

    def _rank(
        self,
        segments: Sequence[Segment],
        found: Candidates,
        query: CheckedQuery,
        weights: Weights,
        top_k: int,
    ) -> list[Hit]:
        """Scores quickly what may be a hit, then exactly what can still be one."""
        if len(found) > top_k:
            quick = weights.colbert != 0
            colbert = _colbert(segments, found, query, precise=False) if quick else np.zeros(len(found))
            sums = weighted_sum(np.stack([found.dense, found.sparse, colbert], axis=1), weights)
            error = 2 * QUICK_ERROR * abs(weights.colbert) * max(1.0, float(np.abs(colbert).max()))
            lowest = np.partition(sums, len(sums) - top_k)[len(sums) - top_k]
            found = found.take(np.flatnonzero(sums >= lowest - error))
        components = _components(segments, found, query)
        sums = weighted_sum(components, weights)
        order = best(sums, top_k, lambda places: ids_at(segments, found.segments[places], found.rows[places]))
        stored = self.settings.stores_token_vectors and query.colbert is not None
        return [
            Hit(
                segments[int(found.segments[place])].documents.get(int(found.rows[place])),
                float(sums[place]),
                Scores(
                    float(components[place, 0]),
                    float(components[place, 1]),
                    float(components[place, 2]) if stored else None,
                ),
            )
            for place in order.tolist()
        ]


def _components(segments: Sequence[Segment], found: Candidates, query: CheckedQuery) -> Float64:
    """The exact scores float64[K, 3]."""
    return np.stack([found.dense, found.sparse, _colbert(segments, found, query, precise=True)], axis=1)


def _colbert(
    segments: Sequence[Segment], found: Candidates, query: CheckedQuery, *, precise: bool
) -> Float64:
    scores = np.zeros(len(found))
    for place, run in runs(found.segments):
        scores[run] = segments[place].colbert_scores(query.colbert, found.rows[run], precise=precise)
    return scores
