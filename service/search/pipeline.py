"""The online pipeline: from a query to hits, the same for HTTP, the command line and Python."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, ParamSpec, TypeVar, get_args

import numpy as np

from index.candidates import CandidateLimits, DenseOptions, Facet, Hit, Page, SearchResult, Weights
from index.documents.boosts import Boost
from index.documents.filters import Filter
from index.fusion import Fusion
from index.search.snapshot_query import SnapshotQuery
from models.encoder import EncoderInfo
from models.representations import OUTPUTS, Output, Representations
from models.tokenizer import Tokenizer
from service.encoding.service import EncodingService, estimated_tokens
from service.encoding.shelf import EncoderShelf
from service.exceptions import BegunAgainError, SnapshotGoneError
from service.facts import note
from service.load.admission import ANY_WAIT, Admission, Ticket
from service.load.concurrency import in_lanes
from service.load.deadlines import NO_DEADLINE, Deadline
from service.load.pools import Pool
from service.load.reading import Reading
from service.load.relay import on_loop, relay
from service.readable import ReadableSnapshot
from service.search.checks import require_bm25, require_candidates, require_fields, require_sides_asked
from service.search.defaults import WantedCandidates, WantedEffort, candidates_used, weights_used
from service.search.explanations import HitExplanation, explain_hits, require_explainable
from service.search.highlights import HitHighlights, highlights_of
from service.search.line import SearchLine
from service.search.query_terms import QueryTerms, query_terms, require_meaning
from service.search.ready_queries import ReadyQuery, require_sides
from service.search.stored_queries import Like, ids_of, stored_query
from service.search.target import target_of
from service.served_collections import ServedCollections
from service.tracing.request import record

Shaped = TypeVar("Shaped")
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
HitPart = Literal["scores", "window", "title", "text", "metadata"]
ALL_PARTS: frozenset[HitPart] = frozenset(get_args(HitPart))
CONTENTS: frozenset[HitPart] = frozenset({"title", "text", "metadata"})  # what is stored together


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """What is searched. query: a text, or ready representations of one text, which is then `text`, for BM25,
    or stored documents; adapter: by default the collection's, and no other would do.

    weights: None takes the collection's defaults, or 1, 1, 1 where it has none; likewise candidates and
    effort. page: which of the ordered candidates are wanted; group_by: a keyword field, of each value of
    which the best is. facets: of fields so many values, counted over what the filter allows. boosts: what is
    added to the scores of candidates; fusion: how scores become one. include: the parts of a hit that are
    wanted, by default all; highlight: where hits have what the query says. snapshot: the version that is to
    be searched, by default the latest. allow_partial: whether hits may lack those of parts of a divided
    collection that do not answer; newest: they have to come from where the collection is written. param: what
    the query is called in messages.
    """

    collection: str
    query: str | Representations | ReadyQuery | Like
    top_k: int = 10
    weights: Weights | None = None
    sides_asked: frozenset[str] = frozenset()
    candidates: WantedCandidates = field(default_factory=WantedCandidates)
    filter: Filter | None = None
    explain: bool = False
    effort: WantedEffort = field(default_factory=WantedEffort)
    adapter: str | None = None
    text: str | None = None
    page: Page = field(default_factory=Page)
    group_by: str | None = None
    facets: Mapping[str, int] | None = None
    boosts: tuple[Boost, ...] = ()
    fusion: Fusion = "sum"
    include: frozenset[HitPart] = ALL_PARTS
    highlight: bool = False
    snapshot: str | None = None
    allow_partial: bool = False
    newest: bool = False
    param: str = "query"

    @property
    def words(self) -> str | None:
        """The text that is searched for, where it is known."""
        return self.query if isinstance(self.query, str) else self.text

    @property
    def needs_contents(self) -> bool:
        """Whether stored texts are to be read for the hits."""
        return self.explain or self.highlight or not CONTENTS.isdisjoint(self.include)


@dataclass(frozen=True, slots=True)
class SearchOutcome:
    """What was found, and with which weights and candidates; `sides`: what the collection's encoder gives;
    `bm25`: whether the collection has that side.

    `explanations` and `highlights` go with the hits, where they are asked for; `terms`, where the collection
    has an idf, `tokens` and `truncated` are the query's; exhausted: no more hits of the candidates follow.
    lost: parts of a divided collection that did not answer, where that was allowed.
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
    sides: tuple[Output, ...] = OUTPUTS
    bm25: bool = False
    facets: Mapping[str, Facet] | None = None
    highlights: list[HitHighlights] | None = None
    exhausted: bool = False
    lost: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A query ready to be run. words: its text, where it is known; without: the ids of documents that are no
    hits.
    """

    asked: SearchQuery
    representations: Representations
    words: str | None
    without: tuple[str, ...] = ()


class SearchPipeline:
    """Searches collections, each with its encoder."""

    def __init__(
        self,
        encoders: EncoderShelf,
        collections: ServedCollections,
        pool: Pool,
        admission: Admission = ANY_WAIT,
        ticket: Callable[[Deadline], Ticket] = Ticket,
    ) -> None:
        """pool: where searches run; admission: by default of any wait; ticket: of a request that has come."""
        self._encoders = encoders
        self._collections = collections
        self._pool = pool
        self._line = SearchLine(pool)
        self._admission = admission
        self._ticket = ticket

    def wait_seconds(self, tokens: int) -> float:
        """How long a query of so many tokens, 0 for ready representations, would wait if it came now.

        First for an encoder, for the one with the shortest queue, then for a thread.
        """
        encoder_seconds = self._encoders.wait_seconds(tokens) if tokens else 0.0
        return encoder_seconds + self._line.wait_seconds

    async def run(
        self,
        deadline: Deadline,
        work: Callable[Arguments, Result],
        *args: Arguments.args,
        **options: Arguments.kwargs,
    ) -> Result:
        """What a part of a search gives, which has begun, in a thread for searches.

        Raises DeadlineExceededError where none was free in time.
        """
        return await self._line.run(deadline, work, *args, **options)

    async def admitted(
        self,
        deadline: Deadline,
        work: Callable[Arguments, Result],
        *args: Arguments.args,
        **options: Arguments.kwargs,
    ) -> Result:
        """The same of one that begins. Raises OverloadedError, too, where it would wait too long."""
        self._admission.require(self._line.wait_seconds, deadline)
        with self._line.places(1):
            return await self._line.run(deadline, work, *args, **options)

    async def search(self, query: SearchQuery, deadline: Deadline = NO_DEADLINE) -> SearchOutcome:
        """Hits of one query; raises as `search_all`."""
        return (await self.search_all([query], deadline))[0]

    async def search_all(
        self, queries: Sequence[SearchQuery], deadline: Deadline = NO_DEADLINE
    ) -> list[SearchOutcome]:
        """Hits of queries, as `answer_all` finds them."""
        return await self.answer_all(queries, lambda _query, outcome: outcome, deadline)

    async def answer_all(
        self,
        queries: Sequence[SearchQuery],
        shape: Callable[[SearchQuery, SearchOutcome], Shaped],
        deadline: Deadline = NO_DEADLINE,
    ) -> list[Shaped]:
        """Answers to queries that differ in what they search for alone, through one snapshot.

        shape: makes each answer, in the thread that found it. Texts are encoded together, and they share no
        more threads than a server has for searches.
        Raises CollectionNotFoundError, SnapshotGoneError, DocumentNotFoundError, FingerprintMismatchError,
        InvalidQueryError, InvalidRequestError for a blank query, a filter or field, a side that query or
        collection lack or too much to explain, OverloadedError where they would wait too long,
        DeadlineExceededError where work had not begun in time, and what encoding raises.
        """
        tokens = estimated_tokens([query.query for query in queries if isinstance(query.query, str)])
        self._admission.require(self.wait_seconds(tokens), deadline)
        ticket = self._ticket(deadline)
        with self._line.places(len(queries)):
            try:
                return await relay(self._search(queries, shape, ticket, may_begin_again=True), deadline)
            except BegunAgainError:  # by now it is known what the collection is, and which server was lost
                return await relay(self._search(queries, shape, ticket), deadline)

    async def _search(
        self,
        queries: Sequence[SearchQuery],
        shape: Callable[[SearchQuery, SearchOutcome], Shaped],
        ticket: Ticket,
        *,
        may_begin_again: bool = False,
    ) -> list[Shaped]:
        query, deadline = queries[0], ticket.deadline  # the other queries are like it
        note(collection=query.collection)
        complete = query.weights is not None and query.candidates.complete(query.weights)
        target, encoding = await target_of(
            self._collections,
            self._encoders,
            query.collection,
            query.adapter,
            with_defaults=not complete,
            with_effort=not query.effort.complete,
            how=Reading(deadline, query.allow_partial, query.newest, may_begin_again, query.snapshot),
        )
        snapshot = target.snapshot
        if query.snapshot is not None and query.snapshot != await self._pool.run(_version, snapshot):
            raise SnapshotGoneError(
                f"snapshot {query.snapshot!r:.80} of collection {query.collection!r} is gone, it is "
                f"{snapshot.version!r} now; search without one, and begin with the first page"
            )
        settings = snapshot.settings
        weights = weights_used(query.weights, target.defaults)
        require_sides_asked(query.sides_asked, settings.encoder_sides, settings.encoder, weights)
        weights = weights.of(settings.encoder_sides)
        candidates = candidates_used(
            query.candidates, query.top_k, weights, target.defaults, query.page.offset
        )
        effort = query.effort.used(target.effort)
        require_bm25(weights, query.candidates, settings)
        require_candidates(candidates, query.candidates)
        require_fields(
            snapshot.settings.fields,
            filter=query.filter,
            group_by=query.group_by,
            facets=query.facets,
            boosts=query.boosts,
        )
        queries = [_checked(each, encoding.info) for each in queries]
        for each in queries:
            if isinstance(each.query, Representations):
                require_sides(each.query, each.text, weights, candidates, settings, each.param)
        started = time.perf_counter()
        prepared = await self._prepared(queries, snapshot, encoding, weights, ticket)
        encode_seconds = time.perf_counter() - started
        if query.explain:
            hits = len(queries) * min(query.top_k, await self._pool.run(_documents, snapshot))
            for one in prepared:
                require_explainable(one.representations, one.words, hits, bm25=snapshot.settings.bm25)
        facets = None
        if query.facets is not None:
            facets = await self._line.run(deadline, snapshot.facets, query.facets, query.filter)

        def found(one: _Prepared, asked: float) -> tuple[float, SearchResult, Shaped]:
            began = time.monotonic()
            result, explanations = _found(snapshot, encoding.tokenizer, one, weights, candidates, effort)
            highlights = _highlights(snapshot, encoding.tokenizer, one, result.hits)
            outcome = SearchOutcome(
                query.collection,
                result.snapshot,
                weights,
                candidates,
                result.hits,
                explanations,
                query_terms(one.representations, snapshot.idf, encoding.tokenizer),
                int(one.representations.tokens[0]),
                bool(one.representations.truncated[0]),
                encode_seconds,
                result.retrieve_seconds,
                result.score_seconds,
                encode_seconds + time.monotonic() - asked,
                settings.encoder_sides,
                settings.bm25,
                facets,
                highlights,
                len(result.hits) < query.top_k and not result.lost,
                result.lost,
            )
            return began, result, shape(one.asked, outcome)

        async def answer(one: _Prepared) -> Shaped:
            asked = time.monotonic()
            began, result, shaped = await self._line.run(deadline, found, one, asked)
            _record_stages(asked, began, result, explained=query.explain)
            counts.append(len(result.hits))
            return shaped

        counts: list[int] = []
        if len(prepared) == 1:
            answers = [await answer(prepared[0])]
        else:
            answers = await on_loop(in_lanes(self._line.threads, prepared, answer))
        note(snapshot=snapshot.version, hits=sum(counts))
        return answers

    async def _prepared(
        self,
        queries: Sequence[SearchQuery],
        snapshot: ReadableSnapshot,
        encoding: EncodingService,
        weights: Weights,
        ticket: Ticket,
    ) -> list[_Prepared]:
        """The queries with their representations; all texts are encoded at once."""
        texts = [query.query for query in queries if isinstance(query.query, str)]
        for query in queries:
            if isinstance(query.query, str):
                require_meaning(encoding.tokenizer, query.query, query.param)
        encoded: Iterator[Representations] = iter(())
        if texts:
            together = await encoding.encode(texts, "query", adapter=snapshot.settings.adapter, ticket=ticket)
            encoded = (together.take(np.array([row])) for row in range(len(texts)))
        prepared = []
        for query in queries:
            if isinstance(query.query, Like):
                prepared.append(await self._pool.run(_like, query, query.query, snapshot, weights))
            elif isinstance(query.query, str):
                prepared.append(_Prepared(query, next(encoded), query.query))
            elif isinstance(query.query, Representations):
                prepared.append(_Prepared(query, query.query, query.text))
        return prepared


def _version(snapshot: ReadableSnapshot) -> str:
    return snapshot.version


def _documents(snapshot: ReadableSnapshot) -> int:
    return snapshot.documents


def _checked(query: SearchQuery, info: EncoderInfo) -> SearchQuery:
    """The query with representations that fit the encoder. Raises InvalidRequestError."""
    if not isinstance(query.query, ReadyQuery):
        return query
    return replace(query, query=query.query.checked(info, query.param))


def _found(
    snapshot: ReadableSnapshot,
    tokenizer: Tokenizer,
    query: _Prepared,
    weights: Weights,
    candidates: CandidateLimits,
    effort: DenseOptions,
) -> tuple[SearchResult, list[HitExplanation] | None]:
    """The hits, and why they are hits where the query asks; one thread does it all."""
    asked = query.asked
    result = snapshot.answer(
        SnapshotQuery(
            query.representations,
            query.words,
            asked.top_k,
            weights,
            candidates,
            asked.filter,
            effort,
            asked.page,
            asked.group_by,
            asked.boosts,
            asked.fusion,
            query.without,
            contents=asked.needs_contents,
        )
    )
    if not asked.explain:
        return result, None
    representations, hits = query.representations, result.hits
    return result, explain_hits(snapshot, tokenizer, query.words, representations, hits, asked.boosts)


def _highlights(
    snapshot: ReadableSnapshot, tokenizer: Tokenizer, query: _Prepared, hits: Sequence[Hit]
) -> list[HitHighlights] | None:
    if not query.asked.highlight:
        return None
    return highlights_of(snapshot.settings, snapshot.idf, tokenizer, query.words, query.representations, hits)


def _like(query: SearchQuery, like: Like, snapshot: ReadableSnapshot, weights: Weights) -> _Prepared:
    """Stored documents as a query. Raises as `stored_query`."""
    stored, text = stored_query(like, query.param, snapshot, weights)
    return _Prepared(query, stored.representations, text, ids_of(like))


def _record_stages(asked: float, began: float, result: SearchResult, *, explained: bool) -> None:
    """Records the stages of a search. asked: when it was ready for a thread; began: when it got one."""
    retrieved = began + result.retrieve_seconds
    scored = retrieved + result.score_seconds
    record("queue", asked, began)
    record("retrieve", began, retrieved)
    record("score", retrieved, scored)
    if explained:
        record("explain", scored)
