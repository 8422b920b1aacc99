"""What a snapshot is asked: a query, and how it is searched for. The same of every kind of snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tercet.index.candidates import CandidateLimits, DenseOptions, Page, Weights
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.documents.boosts import Boost, check_boosts
from tercet.index.documents.filters import Filter, check_filter
from tercet.index.fusion import Fusion
from tercet.index.search.query import check_fusion, check_group_by, check_options, check_page, check_weights
from tercet.models.representations import Representations

DEFAULT_WEIGHTS = Weights()
DEFAULT_LIMITS = CandidateLimits()
DEFAULT_OPTIONS = DenseOptions()
FIRST_PAGE = Page()
LEADERS = 2  # the best, and what it is compared with


@dataclass(frozen=True, slots=True)
class SnapshotQuery:
    """A search for the `top_k` candidates of highest score, every one scored in all three ways.

    text: the query itself, for BM25; without it, or without BM25, a hit has no such score. page: which of
    the ordered candidates are wanted. group_by: a declared keyword field, of each value of which the best
    candidate alone is a hit, and every one without a value. boosts: what is added to the scores of
    candidates; no other documents are found for them. fusion: whether a score is the weighted sum, or
    that of reciprocal ranks among the candidates. without: ids of documents that are none. contents:
    without them no stored text is read, and a hit's document has its id alone. leading: weights of which the
    scores of the best two candidates by the sum are told, too.
    """

    query: Representations
    text: str | None = None
    top_k: int = 10
    weights: Weights = DEFAULT_WEIGHTS
    candidates: CandidateLimits = DEFAULT_LIMITS
    filter: Filter | None = None
    dense_options: DenseOptions = DEFAULT_OPTIONS
    page: Page = FIRST_PAGE
    group_by: str | None = None
    boosts: Sequence[Boost] = ()
    fusion: Fusion = "sum"
    without: Sequence[str] = ()
    contents: bool = True
    leading: Weights | None = None

    @property
    def limits(self) -> CandidateLimits:
        """What each side proposes, with as many more as there are documents that are no candidates."""
        return self.candidates.used(self.weights).with_more(len(self.without))

    @property
    def nearest(self) -> int | None:
        """How many of the dense side's best are enough where it alone orders the hits, and nobody leads by
        other weights; None where it does not.
        """
        alone = self.weights.dense_alone and not self.boosts and self.leading is None
        if alone and self.page.after is None and self.group_by is None:
            return self.page.offset + self.top_k + len(self.without)
        return None

    @property
    def wanted(self) -> int | None:
        """How many candidates of the highest sums are enough; None where all may be hits, since ranks, groups
        and places behind a cursor tell of all of them.
        """
        if self.fusion == "sum" and self.group_by is None and self.page.after is None:
            return self.page.offset + self.top_k
        return None


def check_snapshot_query(request: SnapshotQuery, settings: CollectionSettings) -> None:
    """Raises InvalidQueryError for a filter or option that a collection cannot answer."""
    check_options(request.top_k, request.candidates.used(request.weights), request.dense_options)
    check_page(request.page)
    check_group_by(request.group_by, settings.fields)
    check_weights(request.query, request.text, request.weights, settings)
    check_boosts(request.boosts, settings.fields)
    check_fusion(request.fusion)
    if request.filter is not None:
        check_filter(request.filter, settings.fields)
