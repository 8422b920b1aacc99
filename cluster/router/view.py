"""A collection over shards as one request sees it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from contextlib import nullcontext
from functools import partial
from typing import TypeVar

from tercet.cluster.router.collection import KnownCollection
from tercet.cluster.router.fan_out import FanOut, query_of
from tercet.cluster.router.statistics import (
    VERSIONS,
    KnownTerms,
    KnownWords,
    documents_of,
    sound,
    version_of,
)
from tercet.index.bm25.query import WordCounts
from tercet.service.exceptions import ShardFailedError
from tercet.service.shard.codec import decode, encode
from tercet.service.shard.records import ShardState, StatisticsRequest, TermReport

OF_TERMS = "/"  # in a version, before that of terms where it is another

Answer = TypeVar("Answer")
Request = TypeVar("Request")


class View:
    """All that the request asks is of one state of each shard, which that tells with its first answer; and
    all weights are by what was known of terms at one moment. Use from the event loop, but for the properties.
    """

    def __init__(self, known: KnownCollection, fan_out: FanOut, shards: Collection[int]) -> None:
        """shards: the numbers of those that are searched."""
        self.known = known
        self.fan_out = fan_out
        self.places: dict[tuple[str, str | None], int] = {}  # the shards of hits, by id and collection
        self._searched = shards
        self._shards: list[ShardState | None] = [None] * len(fan_out)
        self._terms: KnownTerms | None = None
        self._has_asked = False  # what shards know of terms
        self._renewing: asyncio.Task[tuple[KnownTerms, WordCounts | None]] | None = None
        self._first = asyncio.Lock()

    @property
    def is_fixed(self) -> bool:
        """Whether the states are fixed, of all shards that are searched and not lost."""
        return all(
            self._shards[number] is not None or self.fan_out.is_lost(number) for number in self._searched
        )

    @property
    def terms(self) -> KnownTerms | None:
        """By which all is weighed, None before anything was."""
        return self._terms

    @property
    def version(self) -> str:
        """The names of all states, also of those at which terms were counted where these are others."""
        version, terms = version_of(self._shards, self._searched), self._terms
        if terms is None or not self.known.goes_by_terms or terms.version == version:
            return version
        return f"{version}{OF_TERMS}{terms.version}"

    @property
    def documents(self) -> int:
        """How many those shards have that are searched."""
        return documents_of(self._shards)

    def fix(self, shard: int, at: ShardState) -> None:
        """The state of which a shard's first answer is."""
        if self._shards[shard] is None:
            self._shards[shard] = at

    async def told(self) -> None:
        """Asks shards for their states, where these are not fixed yet."""
        if not self.is_fixed:
            await self._ask_states(self._searched)

    async def find(self, version: str) -> None:
        """Fixes the states at a version, as far as servers of the shards have it."""
        documents, _, terms = version.partition(OF_TERMS)
        wanted = documents.split(VERSIONS)
        if len(wanted) != len(self._shards):
            return
        others = self._searched
        while others:
            for shard in others:
                self._shards[shard] = None
            await self._ask_states(others)
            others = [
                shard
                for shard, at in enumerate(self._shards)
                if at is not None and at.version != wanted[shard] and self.fan_out.turn_away(shard)
            ]
        self._terms = self.known.statistics.at(terms or documents)

    def of_searched(self, request: Request, nothing: Request) -> list[Request]:
        """The same request to each shard that is searched, and nothing to the others."""
        return [request if shard in self._searched else nothing for shard in range(len(self._shards))]

    async def read(
        self,
        operation: str,
        bodies: Sequence[bytes | None],
        read: Callable[[int, bytes], Answer],
        *,
        fixes: bool = False,
    ) -> list[Answer | None]:
        """What shards answer that have a body, all at the states that are fixed, or that are by this.

        fixes: whether `read` fixes a shard's state by its answer; else that is asked for first.
        """
        if not fixes:
            await self.told()
        async with nullcontext() if self.is_fixed else self._first:
            return await self.fan_out.ask(operation, bodies, read, partial(self._query, operation))

    def _query(self, operation: str, shard: int, _server: str) -> dict[str, str]:
        at, tag = self._shards[shard], self.known.tags[shard] if operation == "candidates" else None
        return query_of({"tag": tag, "state": None if at is None else at.state})

    async def weighed(self, words: Sequence[str] | None) -> tuple[KnownTerms, WordCounts | None]:
        """What is known of terms, and of some words, as far as anything is known of all shards that are not
        lost; asks where something is not.
        """
        statistics = self.known.statistics
        terms, counts = self._known_of(words)
        if not self._has_heard(terms):
            async with statistics.first:
                if not self._has_heard(statistics.current):
                    return await self._renew(words or ())
            terms, counts = self._known_of(words)
        if words is None or counts is not None:
            return terms, counts
        if self._terms is None:
            return await self._renew(words)
        return terms, await self._ask_words(terms.words, words)

    def renew(self, words: Sequence[str]) -> None:
        """Begins to ask what shards know of terms by now, where the request wants the newest, or what is
        known is old; not once the request has asked, or goes by something.
        """
        if self._terms is not None or self._has_asked:
            return
        if self.fan_out.of_newest or not self.known.statistics.is_fresh:
            self._renewing = asyncio.ensure_future(self._renew(words))
            self._renewing.add_done_callback(lambda ended: ended.cancelled() or ended.exception())

    async def settle(self, terms: KnownTerms) -> KnownTerms:
        """By what all is weighed from now on: these, but where others are newer, or were settled before."""
        if self._renewing is not None:
            terms, _ = await self._renewing
        if self._terms is None:
            self._terms = terms
        return self._terms

    async def settled(self) -> KnownTerms:
        """By what all is weighed from now on, if nothing was before."""
        terms, _ = await self.weighed(None)
        self.renew(())
        return await self.settle(terms)

    def _known_of(self, words: Sequence[str] | None) -> tuple[KnownTerms, WordCounts | None]:
        terms = self._terms or self.known.statistics.current
        return terms, None if words is None else terms.words.of(words)

    def _has_heard(self, terms: KnownTerms) -> bool:
        """Whether these tell of every shard that is not lost."""
        return all(at is not None or self.fan_out.is_lost(shard) for shard, at in enumerate(terms.shards))

    async def _renew(self, words: Sequence[str]) -> tuple[KnownTerms, WordCounts | None]:
        """Asks all shards for what is new; with some words, what they know of these."""
        statistics = self.known.statistics
        began = statistics.current
        wanted = tuple(dict.fromkeys([*words, *began.words.last]))
        statistics.begin()
        self._has_asked = True
        try:
            reports = await self._reports(began, wanted)
            terms = began.after(reports)
            if terms is None:
                began = statistics.nothing
                reports = await self._reports(began, wanted)
                terms = began.after(reports)
        except BaseException:
            statistics.give_up()
            raise
        if terms is None:
            raise ShardFailedError(
                f"a shard of {self.known.name!r} tells what changed, and was asked for everything",
                self.known.name,
            )
        counts = self._together(terms.words, wanted, reports.values())
        statistics.keep(terms)
        if not words or counts is None:
            return terms, None
        return terms, WordCounts(counts.documents, counts.total_length, counts.frequencies[: len(words)])

    async def _ask_words(self, known: KnownWords, words: Sequence[str]) -> WordCounts | None:
        """What shards know of words."""
        body = encode(StatisticsRequest(terms=False, words=tuple(words)))
        return self._together(known, words, (await self._of_writers(body, len(words), None)).values())

    def _together(
        self, known: KnownWords, words: Sequence[str], reports: Collection[TermReport]
    ) -> WordCounts | None:
        counts = [report.words for report in reports if report.words is not None]
        if not counts:
            return None
        together = WordCounts.together(counts)
        if len(counts) == len(self._shards):
            known.keep(words, together)
        return together

    async def _reports(self, began: KnownTerms, words: Sequence[str]) -> dict[int, TermReport]:
        """What shards tell that answer, beyond what is known, by their numbers."""
        body = encode(StatisticsRequest(terms=True, words=tuple(words) or None))
        return await self._of_writers(body, len(words), began)

    async def _of_writers(self, body: bytes, words: int, began: KnownTerms | None) -> dict[int, TermReport]:
        size = self.known.description.settings.vocabulary_size

        def read(_shard: int, body: bytes) -> TermReport:
            return sound(decode(TermReport, body, T=words), size)

        def query(shard: int, _server: str) -> dict[str, str]:
            return query_of({"known": None if began is None else began.state_of(shard)})

        bodies = [body] * len(self._shards)
        reports = await self.fan_out.ask("statistics", bodies, read, query, of_writer=True)
        return {shard: report for shard, report in enumerate(reports) if report is not None}

    async def _ask_states(self, shards: Collection[int]) -> None:
        def read(shard: int, body: bytes) -> None:
            self.fix(shard, decode(TermReport, body).at)

        body = encode(StatisticsRequest(terms=False, words=None))
        bodies = [body if shard in shards else None for shard in range(len(self._shards))]
        await self.read("statistics", bodies, read, fixes=True)
