"""The online pipeline: from a query to hits, the same for HTTP, the command line and Python.

A search has two steps: a plan, for which the collection is opened and the queries are encoded, and its
execution, for each query in a thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from tercet.models.encoder import EncoderInfo
from tercet.models.representations import Representations
from tercet.service.collections.readable import AwaitedSearches, ReadableSnapshot, SearchTarget
from tercet.service.collections.served import Reads
from tercet.service.encoding.options import TextOptions
from tercet.service.encoding.rerankers import Rerankers
from tercet.service.encoding.service import EncodingService, estimated_tokens
from tercet.service.encoding.shelf import EncoderShelf
from tercet.service.exceptions import BegunAgainError, SnapshotGoneError
from tercet.service.load.admission import ANY_WAIT, Admission, Ticket
from tercet.service.load.concurrency import in_lanes
from tercet.service.load.deadlines import NO_DEADLINE, Deadline
from tercet.service.load.pools import Pool
from tercet.service.load.reading import Reading
from tercet.service.load.relay import on_loop
from tercet.service.search.calibrations import Calibrations
from tercet.service.search.explanations import require_explainable
from tercet.service.search.plan import Executed, Facets, PlannedQuery, SearchParameters, SearchPlan
from tercet.service.search.query import SearchOutcome, SearchQuery, SearchScope
from tercet.service.search.query_terms import require_meaning
from tercet.service.search.queue import SearchQueue
from tercet.service.search.ready_queries import ReadyQuery, require_sides
from tercet.service.search.reranking import require_words, reranked
from tercet.service.search.stored_queries import Like, ids_of, stored_query
from tercet.service.search.target import target_of
from tercet.service.tracing.facts import note

Shaped = TypeVar("Shaped")


class SearchPipeline:
    """Searches collections, each with its encoder. line: of all searches of the server."""

    def __init__(
        self,
        encoders: EncoderShelf,
        rerankers: Rerankers,
        collections: Reads,
        pool: Pool,
        admission: Admission = ANY_WAIT,
        ticket: Callable[[Deadline], Ticket] = Ticket,
    ) -> None:
        """pool: where searches run; admission: by default of any wait; ticket: of a request that has come."""
        self.queue = SearchQueue(pool, admission)
        self._encoders = encoders
        self._rerankers = rerankers
        self._collections = collections
        self._pool = pool
        self._admission = admission
        self._ticket = ticket
        self._calibrations = Calibrations(pool)

    def wait_seconds(self, tokens: int) -> float:
        """How long a query of so many tokens, 0 for ready representations, would wait if it came now.

        First for an encoder, for the one with the shortest queue, then for a thread.
        """
        encoder_seconds = self._encoders.wait_seconds(tokens) if tokens else 0.0
        return encoder_seconds + self.queue.wait_seconds

    async def search(
        self, scope: SearchScope, query: SearchQuery, deadline: Deadline = NO_DEADLINE
    ) -> SearchOutcome:
        """Hits of one query; raises as `answer`."""
        return (await self.answer(scope, [query], lambda _query, outcome: outcome, deadline))[0]

    async def answer(
        self,
        scope: SearchScope,
        queries: Sequence[SearchQuery],
        shape: Callable[[SearchQuery, SearchOutcome], Shaped],
        deadline: Deadline = NO_DEADLINE,
    ) -> list[Shaped]:
        """Answers to the queries of a request, through one snapshot.

        shape: makes each answer, in the thread that found it. Texts are encoded together, and they share no
        more threads than a server has for searches.
        Raises CollectionNotFoundError, SnapshotGoneError, DocumentNotFoundError, FingerprintMismatchError,
        InvalidQueryError, InvalidRequestError for a blank query, a filter or field, a side that query or
        collection lack, a text that a re-ranker lacks or too much to explain, OverloadedError where they
        would wait too long, DeadlineExceededError where work had not begun in time, and what encoding and
        re-ranking raise.
        """
        tokens = estimated_tokens([query.query for query in queries if isinstance(query.query, str)])
        self._admission.require(self.wait_seconds(tokens), deadline)
        ticket = self._ticket(deadline)
        for name in {query.reranker for query in queries if query.reranker is not None}:
            await self._rerankers.named(name, deadline)  # before any work, which would be for nothing
        with self.queue.slots(len(queries)):
            try:
                plan = await self._plan(scope, queries, ticket, may_begin_again=True)
                return await self._execute(plan, shape, deadline)
            except BegunAgainError:  # by now it is known what the collection is, and which server was lost
                plan = await self._plan(scope, queries, ticket)
                return await self._execute(plan, shape, deadline)

    async def _plan(
        self,
        scope: SearchScope,
        queries: Sequence[SearchQuery],
        ticket: Ticket,
        *,
        may_begin_again: bool = False,
    ) -> SearchPlan:
        """The first step: opens the collection, checks each query against it, and encodes them."""
        note(collection=scope.collection)
        reading = Reading(
            ticket.deadline,
            scope.allow_partial,
            scope.newest,
            may_begin_again,
            scope.snapshot,
            queries[0].filter,  # which all queries of a request share
        )
        target, encoding = await target_of(
            self._collections,
            self._encoders,
            self._pool,
            scope.collection,
            scope.adapter,
            with_defaults=any(query.needs_defaults for query in queries),
            with_effort=not all(query.effort.complete for query in queries),
            options=reading,
        )
        snapshot = target.snapshot
        if scope.snapshot is not None and scope.snapshot != await self._pool.run(_version, snapshot):
            raise SnapshotGoneError(
                f"snapshot {scope.snapshot!r:.80} of collection {scope.collection!r} is gone, it is "
                f"{snapshot.version!r} now; search without one, and begin with the first page"
            )
        calibration = None
        if any(query.needs_confidence for query in queries):
            calibration = await self._calibrations.of(target, encoding.info)
        parameters = [SearchParameters.of(query, scope, target, calibration) for query in queries]
        queries = [_checked(query, encoding.info) for query in queries]
        for query, own in zip(queries, parameters, strict=True):
            if isinstance(query.query, Representations):
                require_sides(
                    query.query, query.text, own.weights, own.candidates, snapshot.settings, query.param
                )
        started = time.perf_counter()
        planned = await self._encode(queries, parameters, target, encoding, ticket)
        plan = SearchPlan(scope, snapshot, encoding.tokenizer, planned, time.perf_counter() - started)
        for planned_query in planned:
            if planned_query.query.reranker is not None:
                require_words(planned_query.words, planned_query.query.param)
        explained = [planned_query for planned_query in planned if planned_query.query.explain]
        if explained:
            documents, bm25 = await self._pool.run(_documents, snapshot), snapshot.settings.bm25
            hits = sum(min(planned_query.query.top_k, documents) for planned_query in explained)
            for planned_query in explained:
                require_explainable(planned_query.representations, planned_query.words, hits, bm25=bm25)
        return plan

    async def _encode(
        self,
        queries: Sequence[SearchQuery],
        parameters: Sequence[SearchParameters],
        target: SearchTarget[ReadableSnapshot],
        encoding: EncodingService,
        ticket: Ticket,
    ) -> list[PlannedQuery]:
        """The queries with their representations; all texts are encoded at once."""
        texts = [query.query for query in queries if isinstance(query.query, str)]
        for query in queries:
            if isinstance(query.query, str):
                require_meaning(encoding.tokenizer, query.query, query.param)
        if texts:
            options = TextOptions("query", adapter=target.snapshot.settings.adapter)
            together = await encoding.encode(texts, options, ticket=ticket)
            encoded = (together.take(np.array([row])) for row in range(len(texts)))
        planned = []
        for query, own in zip(queries, parameters, strict=True):
            if isinstance(query.query, Like):
                planned.append(await self._pool.run(_like, query, query.query, own, target.snapshot))
            elif isinstance(query.query, str):
                planned.append(PlannedQuery(query, own, next(encoded), query.query))
            elif isinstance(query.query, Representations):
                planned.append(PlannedQuery(query, own, query.query, query.text))
        return planned

    async def _execute(
        self,
        plan: SearchPlan,
        shape: Callable[[SearchQuery, SearchOutcome], Shaped],
        deadline: Deadline,
    ) -> list[Shaped]:
        """The second step: candidates, scores and answers, in a thread for each query."""
        facets: Facets | None = None
        snapshot, wanted = plan.snapshot, plan.scope.facets
        servers = snapshot if isinstance(snapshot, AwaitedSearches) else None
        if wanted is not None and servers is not None:
            facets = await on_loop(servers.awaited_facets(wanted.values, wanted.filter))
        elif wanted is not None:
            facets = await self.queue.run(deadline, snapshot.facets, wanted.values, wanted.filter)

        ticket = Ticket(deadline)  # the re-ranker's queue is another than the encoder's

        def run(query: PlannedQuery) -> Coroutine[Any, Any, Executed[Shaped]]:
            if query.query.reranker is None and servers is None:
                return self.queue.run(deadline, plan.execute, query, facets, time.monotonic(), shape)
            return self._found_first(query, plan, servers, facets, shape, ticket)

        if len(plan.queries) == 1:
            executed = [await run(plan.queries[0])]
        else:
            executed = await on_loop(in_lanes(self.queue.threads, plan.queries, run))
        note(snapshot=plan.snapshot.version, hits=sum(answered.hits for answered in executed))
        return [answered.answer for answered in executed]

    async def _found_first(
        self,
        query: PlannedQuery,
        plan: SearchPlan,
        servers: AwaitedSearches | None,
        facets: Facets | None,
        shape: Callable[[SearchQuery, SearchOutcome], Shaped],
        ticket: Ticket,
    ) -> Executed[Shaped]:
        """The second step where a re-ranker puts the hits in order, or other servers search: no thread waits
        for them.
        """
        deadline, ready = ticket.deadline, time.monotonic()
        reranker = None
        if query.query.reranker is not None:
            reranker = await self._rerankers.named(query.query.reranker, deadline)
        if servers is None:
            found = await self.queue.run(deadline, plan.found, query)
        else:
            found = await on_loop(plan.found_by(servers, query))
        if reranker is not None:
            words = require_words(query.words, query.query.param)
            found = await reranked(reranker, words, found, ticket)
        return await self.queue.run(deadline, plan.execute, query, facets, ready, shape, found)


def _version(snapshot: ReadableSnapshot) -> str:
    return snapshot.version


def _documents(snapshot: ReadableSnapshot) -> int:
    return snapshot.documents


def _checked(query: SearchQuery, info: EncoderInfo) -> SearchQuery:
    """The query with representations that fit the encoder. Raises InvalidRequestError."""
    if not isinstance(query.query, ReadyQuery):
        return query
    return replace(query, query=query.query.checked(info, query.param))


def _like(
    query: SearchQuery, like: Like, parameters: SearchParameters, snapshot: ReadableSnapshot
) -> PlannedQuery:
    """Stored documents as a query. Raises as `stored_query`."""
    stored, text = stored_query(like, query.param, snapshot, parameters.weights)
    return PlannedQuery(query, parameters, stored.representations, text, ids_of(like))
