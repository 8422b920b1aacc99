"""The online pipeline: from a query to hits, the same for HTTP, the command line and Python."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field

from index.candidates import CandidateLimits, DenseOptions, Hit, SearchResult, Weights
from index.catalog.settings import CollectionSettings
from index.documents.filters import Filter, check_filter
from index.errors import InvalidQueryError
from index.search.query import check_bm25
from index.snapshot import Snapshot
from models.representations import Representations
from service.collections import CollectionRegistry
from service.encoding.service import EncodingService, estimated_tokens
from service.exceptions import InvalidRequestError
from service.facts import note
from service.load.admission import ANY_WAIT, Admission, Ticket
from service.load.deadlines import NO_DEADLINE, Deadline
from service.load.pools import Pool
from service.search.defaults import WantedCandidates, candidates_used, weights_used
from service.search.explanations import HitExplanation, explain_hits, require_explainable
from service.search.line import SearchLine
from service.search.query_terms import QueryTerms, query_terms
from service.search.ready_queries import require_sides
from service.search.target import target_of
from service.tracing.request import record


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """What is searched. query: a text, or ready representations of one text, which is then `text`, for BM25;
    adapter: by default the collection's, and no other would do.

    weights: None takes the collection's defaults, or 1, 1, 1 where it has none; likewise candidates.
    """

    collection: str
    query: str | Representations
    top_k: int = 10
    weights: Weights | None = None
    candidates: WantedCandidates = field(default_factory=WantedCandidates)
    filter: Filter | None = None
    explain: bool = False
    dense_options: DenseOptions = field(default_factory=DenseOptions)
    adapter: str | None = None
    text: str | None = None

    @property
    def words(self) -> str | None:
        """The text that is searched for, where it is known."""
        return self.query if isinstance(self.query, str) else self.text


@dataclass(frozen=True, slots=True)
class SearchOutcome:
    """What was found, and with which weights and candidates; `bm25`: whether the collection has that side.

    `explanations` go with the hits; `terms`, where the collection has an idf, `tokens` and `truncated` are
    the query's.
    """

    collection: str
    snapshot: str
    weights: Weights
    candidates: CandidateLimits
    hits: list[Hit]
    explanations: list[HitExplanation] | None
    terms: QueryTerms | None
    tokens: int
    truncated: bool
    encode_seconds: float
    retrieve_seconds: float
    score_seconds: float
    total_seconds: float
    bm25: bool = False


class SearchPipeline:
    """Searches collections with one encoder."""

    def __init__(
        self,
        encoding: EncodingService,
        collections: CollectionRegistry,
        pool: Pool,
        admission: Admission = ANY_WAIT,
    ) -> None:
        """pool: where searches run; admission: by default of any wait."""
        self._encoding = encoding
        self._collections = collections
        self._pool = pool
        self._line = SearchLine(pool)
        self._admission = admission

    def wait_seconds(self, tokens: int) -> float:
        """How long a query of so many tokens, 0 for ready representations, would wait if it came now.

        First for the encoder, then for a thread.
        """
        encoder_seconds = self._encoding.wait_seconds(tokens) if tokens else 0.0
        return encoder_seconds + self._line.wait_seconds

    async def search(self, query: SearchQuery, deadline: Deadline = NO_DEADLINE) -> SearchOutcome:
        """Hits of one query.

        Raises CollectionNotFoundError, FingerprintMismatchError, InvalidQueryError, InvalidRequestError for
        the filter, a side that query or collection lack or too much to explain, OverloadedError where it
        would wait too long, DeadlineExceededError where its work had not begun in time, and what encoding
        raises.
        """
        tokens = estimated_tokens([query.query]) if isinstance(query.query, str) else 0
        self._admission.require(self.wait_seconds(tokens), deadline)
        with self._line.place():
            return await self._search(query, deadline)

    async def _search(self, query: SearchQuery, deadline: Deadline) -> SearchOutcome:
        started = time.perf_counter()
        note(collection=query.collection)
        complete = query.weights is not None and query.candidates.complete(query.weights)
        target = await target_of(
            self._collections, self._encoding, query.collection, query.adapter, with_defaults=not complete
        )
        snapshot = target.snapshot
        weights = weights_used(query.weights, target.defaults)
        candidates = candidates_used(query.candidates, query.top_k, weights, target.defaults)
        _require_bm25(weights, query.candidates, snapshot.settings)
        _require_candidates(candidates, query.candidates)
        if not isinstance(query.query, str):
            require_sides(query.query, query.text, weights, candidates)
        if query.filter is not None:
            _check_filter(query.filter, snapshot)
        encoding_started = time.perf_counter()
        representations = query.query
        if isinstance(representations, str):
            representations = await self._encoding.encode(
                [representations], "query", adapter=snapshot.settings.adapter, ticket=Ticket(deadline)
            )
        encode_seconds = time.perf_counter() - encoding_started
        if query.explain:
            hits = min(query.top_k, snapshot.documents)
            require_explainable(representations, query.words, hits, bm25=snapshot.settings.bm25)
        asked = time.monotonic()
        began, result, explanations = await self._line.run(
            deadline, self._found, snapshot, query, representations, weights, candidates
        )
        _record_stages(asked, began, result, explained=query.explain)
        note(snapshot=result.snapshot, hits=len(result.hits))
        return SearchOutcome(
            query.collection,
            result.snapshot,
            weights,
            candidates,
            result.hits,
            explanations,
            query_terms(representations, snapshot.idf, self._encoding.tokenizer),
            int(representations.tokens[0]),
            bool(representations.truncated[0]),
            encode_seconds,
            result.retrieve_seconds,
            result.score_seconds,
            time.perf_counter() - started,
            snapshot.settings.bm25,
        )

    def _found(
        self,
        snapshot: Snapshot,
        query: SearchQuery,
        representations: Representations,
        weights: Weights,
        candidates: CandidateLimits,
    ) -> tuple[float, SearchResult, list[HitExplanation] | None]:
        """When it began, the hits, and why they are hits where the query asks; one thread does it all."""
        began = time.monotonic()
        result = snapshot.search(
            representations,
            text=query.words,
            top_k=query.top_k,
            weights=weights,
            candidates=candidates,
            filter=query.filter,
            dense_options=query.dense_options,
        )
        if not query.explain:
            return began, result, None
        tokenizer = self._encoding.tokenizer
        return began, result, explain_hits(snapshot, tokenizer, query.words, representations, result.hits)


def _record_stages(asked: float, began: float, result: SearchResult, *, explained: bool) -> None:
    """Records the stages of a search. asked: when it was ready for a thread; began: when it got one."""
    retrieved = began + result.retrieve_seconds
    scored = retrieved + result.score_seconds
    record("queue", asked, began)
    record("retrieve", began, retrieved)
    record("score", retrieved, scored)
    if explained:
        record("explain", scored)


def _require_bm25(weights: Weights, candidates: WantedCandidates, settings: CollectionSettings) -> None:
    """Raises InvalidRequestError where BM25 is asked of a collection without it."""
    for param, asked in (("weights.bm25", weights.bm25), ("candidates.bm25", candidates.bm25 or 0)):
        try:
            check_bm25(param, asked, settings)
        except InvalidQueryError as error:
            raise InvalidRequestError(str(error), param) from error


def _require_candidates(used: CandidateLimits, wanted: WantedCandidates) -> None:
    """Raises InvalidRequestError where no side proposes any."""
    if any(asdict(used).values()):
        return
    if wanted.bm25:
        raise InvalidRequestError(
            f"candidates.bm25 is {wanted.bm25}, but weights.bm25 is 0, and the other candidates are 0, so "
            "nothing can be found; raise weights.bm25, or candidates of another side",
            "candidates",
        )
    raise InvalidRequestError(
        "candidates are 0 on all sides, so nothing can be found; raise those of one", "candidates"
    )


def _check_filter(wanted: Filter, snapshot: Snapshot) -> None:
    try:
        check_filter(wanted, snapshot.settings.fields)
    except InvalidQueryError as error:
        raise InvalidRequestError(str(error), "filter", "invalid_filter") from error
