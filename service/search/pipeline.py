"""The online pipeline: from a query to hits, the same for HTTP, the command line and Python."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import ParamSpec, TypeVar

import numpy as np

from tercet.index.candidates import SearchResult, Weights
from tercet.models.encoder import EncoderInfo
from tercet.models.representations import Representations
from tercet.service.collections.readable import ReadableSnapshot
from tercet.service.collections.served import Reads
from tercet.service.encoding.options import TextOptions
from tercet.service.encoding.service import EncodingService, estimated_tokens
from tercet.service.encoding.shelf import EncoderShelf
from tercet.service.exceptions import BegunAgainError, SnapshotGoneError
from tercet.service.load.admission import ANY_WAIT, Admission, Ticket
from tercet.service.load.concurrency import in_lanes
from tercet.service.load.deadlines import NO_DEADLINE, Deadline
from tercet.service.load.pools import Pool
from tercet.service.load.reading import Reading
from tercet.service.load.relay import on_loop, relay
from tercet.service.search.explanations import require_explainable
from tercet.service.search.line import SearchLine
from tercet.service.search.plan import PreparedQuery, SearchPlan
from tercet.service.search.query import SearchOutcome, SearchQuery
from tercet.service.search.query_terms import query_terms, require_meaning
from tercet.service.search.ready_queries import ReadyQuery, require_sides
from tercet.service.search.stored_queries import Like, ids_of, stored_query
from tercet.service.search.target import target_of
from tercet.service.tracing.facts import note
from tercet.service.tracing.request import record

Shaped = TypeVar("Shaped")
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class SearchPipeline:
    """Searches collections, each with its encoder."""

    def __init__(
        self,
        encoders: EncoderShelf,
        collections: Reads,
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
        plan = SearchPlan.of(query, target, encoding.tokenizer)
        settings = snapshot.settings
        queries = [_checked(each, encoding.info) for each in queries]
        for each in queries:
            if isinstance(each.query, Representations):
                require_sides(each.query, each.text, plan.weights, plan.candidates, settings, each.param)
        started = time.perf_counter()
        prepared = await self._prepared(queries, snapshot, encoding, plan.weights, ticket)
        encode_seconds = time.perf_counter() - started
        if query.explain:
            hits = len(queries) * min(query.top_k, await self._pool.run(_documents, snapshot))
            for one in prepared:
                require_explainable(one.representations, one.words, hits, bm25=settings.bm25)
        facets = None
        if query.facets is not None:
            facets = await self._line.run(deadline, snapshot.facets, query.facets, query.filter)

        def found(one: PreparedQuery, asked: float) -> tuple[float, SearchResult, Shaped]:
            began = time.monotonic()
            result = plan.hits(one)
            explanations, highlights = plan.explanations(one, result.hits), plan.highlights(one, result.hits)
            outcome = SearchOutcome(
                query.collection,
                result.snapshot,
                plan.weights,
                plan.candidates,
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

        async def answer(one: PreparedQuery) -> Shaped:
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
    ) -> list[PreparedQuery]:
        """The queries with their representations; all texts are encoded at once."""
        texts = [query.query for query in queries if isinstance(query.query, str)]
        for query in queries:
            if isinstance(query.query, str):
                require_meaning(encoding.tokenizer, query.query, query.param)
        encoded: Iterator[Representations] = iter(())
        if texts:
            options = TextOptions("query", adapter=snapshot.settings.adapter)
            together = await encoding.encode(texts, options, ticket=ticket)
            encoded = (together.take(np.array([row])) for row in range(len(texts)))
        prepared = []
        for query in queries:
            if isinstance(query.query, Like):
                prepared.append(await self._pool.run(_like, query, query.query, snapshot, weights))
            elif isinstance(query.query, str):
                prepared.append(PreparedQuery(query, next(encoded), query.query))
            elif isinstance(query.query, Representations):
                prepared.append(PreparedQuery(query, query.query, query.text))
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


def _like(query: SearchQuery, like: Like, snapshot: ReadableSnapshot, weights: Weights) -> PreparedQuery:
    """Stored documents as a query. Raises as `stored_query`."""
    stored, text = stored_query(like, query.param, snapshot, weights)
    return PreparedQuery(query, stored.representations, text, ids_of(like))


def _record_stages(asked: float, began: float, result: SearchResult, *, explained: bool) -> None:
    """Records the stages of a search. asked: when it was ready for a thread; began: when it got one."""
    retrieved = began + result.retrieve_seconds
    scored = retrieved + result.score_seconds
    record("queue", asked, began)
    record("retrieve", began, retrieved)
    record("score", retrieved, scored)
    if explained:
        record("explain", scored)
