"""How a request's queries are run: with which weights, candidates and effort, in one thread each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tercet.index.candidates import CandidateLimits, DenseOptions, Hit, SearchResult, Weights
from tercet.index.search.snapshot_query import SnapshotQuery
from tercet.models.representations import Representations
from tercet.models.tokenizer import Tokenizer
from tercet.service.collections.readable import ReadableSnapshot
from tercet.service.collections.registry import SearchTarget
from tercet.service.search.checks import require_bm25, require_candidates, require_fields, require_sides_asked
from tercet.service.search.defaults import candidates_used, weights_used
from tercet.service.search.explanations import HitExplanation, explain_hits
from tercet.service.search.highlights import HitHighlights, highlights_of
from tercet.service.search.query import SearchQuery


@dataclass(frozen=True, slots=True)
class PreparedQuery:
    """A query ready to be run. words: its text, where it is known; without: the ids of documents that are no
    hits.
    """

    asked: SearchQuery
    representations: Representations
    words: str | None
    without: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """What every query of a request is run with."""

    snapshot: ReadableSnapshot
    tokenizer: Tokenizer
    weights: Weights
    candidates: CandidateLimits
    effort: DenseOptions

    @staticmethod
    def of(query: SearchQuery, target: SearchTarget[ReadableSnapshot], tokenizer: Tokenizer) -> SearchPlan:
        """What a query asks for, and else the collection's defaults. Raises InvalidRequestError."""
        settings = target.snapshot.settings
        weights = weights_used(query.weights, target.defaults)
        require_sides_asked(query.sides_asked, settings.encoder_sides, settings.encoder, weights)
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
            facets=query.facets,
            boosts=query.boosts,
        )
        return SearchPlan(target.snapshot, tokenizer, weights, candidates, query.effort.used(target.effort))

    def hits(self, query: PreparedQuery) -> SearchResult:
        """The hits of one query."""
        asked = query.asked
        return self.snapshot.answer(
            SnapshotQuery(
                query.representations,
                query.words,
                asked.top_k,
                self.weights,
                self.candidates,
                asked.filter,
                self.effort,
                asked.page,
                asked.group_by,
                asked.boosts,
                asked.fusion,
                query.without,
                contents=asked.needs_contents,
            )
        )

    def explanations(self, query: PreparedQuery, hits: Sequence[Hit]) -> list[HitExplanation] | None:
        """Why they are hits, where the query asks."""
        if not query.asked.explain:
            return None
        return explain_hits(
            self.snapshot, self.tokenizer, query.words, query.representations, hits, query.asked.boosts
        )

    def highlights(self, query: PreparedQuery, hits: Sequence[Hit]) -> list[HitHighlights] | None:
        """Where hits have what the query says, where it asks."""
        if not query.asked.highlight:
            return None
        settings, idf = self.snapshot.settings, self.snapshot.idf
        return highlights_of(settings, idf, self.tokenizer, query.words, query.representations, hits)
