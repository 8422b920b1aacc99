"""What is searched, and what was found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from tercet.index.candidates import CandidateLimits, Facet, Hit, Page, Weights
from tercet.index.documents.boosts import Boost
from tercet.index.documents.filters import Filter
from tercet.index.fusion import Fusion
from tercet.models.representations import OUTPUTS, Output, Representations
from tercet.service.search.defaults import WantedCandidates, WantedEffort
from tercet.service.search.explanations import HitExplanation
from tercet.service.search.highlights import HitHighlights
from tercet.service.search.query_terms import ReadQuery
from tercet.service.search.ready_queries import ReadyQuery
from tercet.service.search.stored_queries import Like

# Of each hit, but for the terms, which are the query's.
AnswerPart = Literal["scores", "confidence", "window", "title", "text", "metadata", "terms"]
DEFAULT_PARTS: frozenset[AnswerPart] = frozenset(get_args(AnswerPart)) - {"terms"}
CONTENTS: frozenset[AnswerPart] = frozenset({"title", "text", "metadata"})  # what is stored together
FACET_VALUES = 10  # of a field, where a request does not say how many


def facet_counts(facets: Mapping[str, int] | Sequence[str]) -> Mapping[str, int]:
    """How many values are wanted of each field, where a list has but the fields."""
    return facets if isinstance(facets, Mapping) else dict.fromkeys(facets, FACET_VALUES)


@dataclass(frozen=True, slots=True)
class FacetQuery:
    """How many values of which declared fields are counted, over all documents that the filter allows."""

    values: Mapping[str, int]
    filter: Filter | None = None


@dataclass(frozen=True, slots=True)
class SearchScope:
    """Where all queries of a request are searched.

    collection: its name or an alias. adapter: by default the collection's, and no other would do. snapshot:
    the version that is to be searched, by default the latest. allow_partial: whether hits may lack those of
    parts of a divided collection that do not answer. newest: hits have to come from where the collection is
    written. facets: that go with the hits.
    """

    collection: str
    adapter: str | None = None
    snapshot: str | None = None
    allow_partial: bool = False
    newest: bool = False
    facets: FacetQuery | None = None


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """What is searched for, and how. query: a text, or ready representations of one text, which is then
    `text`, for BM25, or stored documents.

    weights: None takes the collection's defaults, or what is usual for its languages; likewise candidates and
    effort. page: which of the ordered candidates are wanted; group_by: a keyword field, of each value of
    which the best is. boosts: what is added to the scores of candidates; fusion: how scores become one.
    include: the parts of the answer that are wanted; highlight: where hits have what the query
    says; reranker: the cross-encoder that puts them in order, by default none. min_confidence: that hits
    have at least, None for all. param: what the query is called in messages.
    """

    query: str | Representations | ReadyQuery | Like
    top_k: int = 10
    weights: Weights | None = None
    requested_sides: frozenset[str] = frozenset()
    candidates: WantedCandidates = field(default_factory=WantedCandidates)
    filter: Filter | None = None
    explain: bool = False
    effort: WantedEffort = field(default_factory=WantedEffort)
    text: str | None = None
    page: Page = field(default_factory=Page)
    group_by: str | None = None
    boosts: tuple[Boost, ...] = ()
    fusion: Fusion = "sum"
    include: frozenset[AnswerPart] = DEFAULT_PARTS
    highlight: bool = False
    reranker: str | None = None
    min_confidence: float | None = None
    param: str = "query"

    @property
    def words(self) -> str | None:
        """The text that is searched for, where it is known."""
        return self.query if isinstance(self.query, str) else self.text

    @property
    def needs_contents(self) -> bool:
        """Whether stored texts are to be read for the hits."""
        reads = self.explain or self.highlight or self.reranker is not None
        return reads or not CONTENTS.isdisjoint(self.include)

    @property
    def needs_confidence(self) -> bool:
        """Whether it is to be known how sure the search is of its hits."""
        return "confidence" in self.include or self.min_confidence is not None

    @property
    def needs_defaults(self) -> bool:
        """Whether weights, candidates or the calibration are left to the collection."""
        left = self.weights is None or not self.candidates.complete(self.weights)
        return left or self.needs_confidence


@dataclass(frozen=True, slots=True)
class StageSeconds:
    """How long the stages of a search took. total: with the wait for a thread; rerank: None where there was
    no re-ranker.
    """

    encode: float
    retrieve: float
    score: float
    total: float
    rerank: float | None = None


@dataclass(frozen=True, slots=True)
class SearchOutcome:
    """What was found, and with which weights and candidates.

    collection: as the request named it. sides: what the collection's encoder gives; bm25: whether the
    collection has that side. explanations, highlights: of the hits, where they are asked for. confidences: of
    the hits, and confident: whether the best is sure enough, both None where that is not known. exhausted: no
    more hits of the candidates follow. lost: parts of a divided collection that did not answer, where that
    was allowed.
    """

    collection: str
    snapshot: str
    query: ReadQuery
    weights: Weights
    candidates: CandidateLimits
    hits: list[Hit]
    seconds: StageSeconds
    sides: tuple[Output, ...] = OUTPUTS
    bm25: bool = False
    explanations: list[HitExplanation] | None = None
    highlights: list[HitHighlights] | None = None
    confidences: list[float] | None = None
    confident: bool | None = None
    facets: Mapping[str, Facet] | None = None
    exhausted: bool = False
    lost: tuple[str, ...] = ()
