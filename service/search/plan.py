"""What a request's queries are searched with: each with its own weights, candidates and effort."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from tercet.index.candidates import CandidateLimits, DenseOptions, Facet, SearchResult, Weights
from tercet.index.catalog.calibration import Calibration
from tercet.index.search.snapshot_query import SnapshotQuery
from tercet.models.representations import Representations
from tercet.models.tokenizer import Tokenizer
from tercet.service.collections.readable import AwaitedSearches, ReadableSnapshot, SearchTarget
from tercet.service.search.checks import require_bm25, require_candidates, require_fields, require_known_sides
from tercet.service.search.confidence import calibration_used, rated, with_leaders
from tercet.service.search.defaults import candidates_used, weights_used
from tercet.service.search.explanations import explain_hits
from tercet.service.search.highlights import highlights_of
from tercet.service.search.query import SearchOutcome, SearchQuery, SearchScope, StageSeconds
from tercet.service.search.query_terms import ReadQuery
from tercet.service.search.reranking import Found
from tercet.service.tracing.request import record

Shaped = TypeVar("Shaped")
Facets = Mapping[str, Facet]


@dataclass(frozen=True, slots=True)
class SearchParameters:
    """The weights, candidates and effort of one query. calibration: which says how sure its hits are, None
    where that is not known or not asked for.
    """

    weights: Weights
    candidates: CandidateLimits
    effort: DenseOptions
    calibration: Calibration | None = None

    @staticmethod
    def of(
        query: SearchQuery,
        scope: SearchScope,
        target: SearchTarget[ReadableSnapshot],
        calibration: Calibration | None = None,
    ) -> SearchParameters:
        """What a query asks for, and else the collection's defaults. Raises InvalidRequestError.

        calibration: of the collection, where there is one.
        """
        settings = target.snapshot.settings
        weights = weights_used(query.weights, target)
        require_known_sides(query.requested_sides, settings.encoder_sides, settings.encoder, weights)
        weights = weights.of(settings.encoder_sides)
        candidates = candidates_used(
            query.candidates, query.top_k, weights, target.defaults, query.page.offset
        )
        require_bm25(weights, query.candidates, settings)
        require_candidates(candidates, query.candidates)
        require_fields(
            settings.fields,
            filter=query.filter,
            group_by=query.group_by,
            facets=None if scope.facets is None else scope.facets.values,
            boosts=query.boosts,
        )
        return SearchParameters(
            weights,
            candidates,
            query.effort.used(target.effort),
            calibration_used(query, settings, calibration),
        )


@dataclass(frozen=True, slots=True)
class PlannedQuery:
    """A query ready to be run. words: its text, where it is known; without: the ids of documents that are no
    hits.
    """

    query: SearchQuery
    parameters: SearchParameters
    representations: Representations
    words: str | None
    without: tuple[str, ...] = ()

    def of_snapshot(self) -> SnapshotQuery:
        """What a snapshot is asked."""
        query, parameters = self.query, self.parameters
        return SnapshotQuery(
            self.representations,
            self.words,
            query.top_k,
            parameters.weights,
            parameters.candidates,
            query.filter,
            parameters.effort,
            query.page,
            query.group_by,
            query.boosts,
            query.fusion,
            self.without,
            contents=query.needs_contents,
        )


@dataclass(frozen=True, slots=True)
class Executed(Generic[Shaped]):
    """What was made of the outcome of one query, and how many hits that has."""

    answer: Shaped
    hits: int


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """All queries of a request over one snapshot, encoded. encode_seconds: what that took."""

    scope: SearchScope
    snapshot: ReadableSnapshot
    tokenizer: Tokenizer
    queries: Sequence[PlannedQuery]
    encode_seconds: float

    def found(self, planned: PlannedQuery) -> Found:
        """What the sum finds for one query. It blocks."""
        began = time.monotonic()
        return Found(self.snapshot.answer(self._asked(planned)), began)

    async def found_by(self, servers: AwaitedSearches, planned: PlannedQuery) -> Found:
        """What the sum finds for one query in the snapshot, which other servers search."""
        began = time.monotonic()
        return Found(await servers.awaited_answer(self._asked(planned)), began)

    def _asked(self, planned: PlannedQuery) -> SnapshotQuery:
        """What the snapshot is asked for one query. It blocks where languages were not detected yet."""
        query = planned.of_snapshot()
        return query if planned.parameters.calibration is None else with_leaders(query, self.snapshot)

    def execute(
        self,
        planned: PlannedQuery,
        facets: Facets | None,
        ready: float,
        shape: Callable[[SearchQuery, SearchOutcome], Shaped],
        found: Found | None = None,
    ) -> Executed[Shaped]:
        """Searches for one query. It blocks, so it is for threads.

        facets: that go with its hits; ready: when it began to wait for a thread, of the monotonic clock;
        shape: makes an answer of the outcome; found: what was found already.
        """
        began = time.monotonic() if found is None else found.began
        query, snapshot, settings = planned.query, self.snapshot, self.snapshot.settings
        asked = self._asked(planned)
        result = snapshot.answer(asked) if found is None else found.result
        hits, encoded, words = result.hits, planned.representations, planned.words
        confidences, confident = None, None
        if planned.parameters.calibration is not None:
            sure = rated(snapshot, asked, result, planned.parameters.calibration)
            if query.min_confidence is not None:
                sure = sure.at_least(query.min_confidence)
            hits, confidences, confident = sure.hits, sure.confidences, sure.confident
        explanations = highlights = None
        if query.explain:
            explanations = explain_hits(snapshot, self.tokenizer, words, encoded, hits, query.boosts)
        if query.highlight:
            highlights = highlights_of(settings, snapshot.idf, self.tokenizer, words, encoded, hits)
        outcome = SearchOutcome(
            collection=self.scope.collection,
            snapshot=result.snapshot,
            query=ReadQuery.of(encoded, snapshot.idf if "terms" in query.include else None, self.tokenizer),
            weights=planned.parameters.weights,
            candidates=planned.parameters.candidates,
            hits=hits,
            seconds=StageSeconds(
                self.encode_seconds,
                result.retrieve_seconds,
                result.score_seconds,
                self.encode_seconds + time.monotonic() - ready,
                None if found is None else found.rerank_seconds,
            ),
            sides=settings.encoder_sides,
            bm25=settings.bm25,
            explanations=explanations,
            highlights=highlights,
            confidences=confidences,
            confident=confident,
            facets=facets,
            exhausted=len(result.hits) < query.top_k and not result.lost,
            lost=result.lost,
        )
        answer = shape(query, outcome)
        _record_stages(ready, began, result, explained=query.explain)
        return Executed(answer, len(hits))


def _record_stages(ready: float, began: float, result: SearchResult, *, explained: bool) -> None:
    """Records the stages of a search, which was ready for a thread at one moment and got one at the next."""
    retrieved = began + result.retrieve_seconds
    scored = retrieved + result.score_seconds
    record("queue", ready, began)
    record("retrieve", began, retrieved)
    record("score", retrieved, scored)
    if explained:
        record("explain", scored)
