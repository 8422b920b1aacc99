"""What the router keeps of a collection between requests, and how one request sees it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from tercet.cluster.router.fan_out import FanOut, query_of
from tercet.cluster.router.term_states import TermStates
from tercet.cluster.router.terms import VERSIONS, KnownTerms, sound
from tercet.index.bm25.query import WordCounts
from tercet.index.sparse.term_totals import TermTotals
from tercet.service.exceptions import ShardFailedError
from tercet.service.shard.codec import decode, encode
from tercet.service.shard.description import ShardDescription
from tercet.service.shard.records import StatisticsRequest, TermReport

Answer = TypeVar("Answer")


@dataclass(slots=True)
class KnownCollection:
    """A collection as its shards described it, and what they last told of its terms. tags: of each shard's
    description, None of one that was lost; described_by: the servers that gave them; servers: how many each
    shard has. is_stale: a shard has another description by now, or was lost; behind: servers that have
    another one than the shard.
    """

    name: str
    description: ShardDescription
    tags: Sequence[str | None]
    described_by: Sequence[str]
    servers: Sequence[int]
    is_stale: bool = False
    behind: set[str] = field(default_factory=set)
    term_states: TermStates = field(init=False)
    described: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        settings = self.description.settings
        totals = TermTotals([], settings.vocabulary_size) if settings.lexical == "idf" else None
        self.term_states = TermStates(KnownTerms.nothing(len(self.tags), totals), self.servers)

    @property
    def age_seconds(self) -> float:
        """How long ago shards described it."""
        return time.monotonic() - self.described

    def stays(self, later: KnownCollection, writers: Sequence[str]) -> bool:
        """Whether it counts on, beside a later one: it is the same, or where not, the later one comes from a
        replica and this from the writing server.
        """
        return not self.is_stale and all(
            tag == other or by == writer != later_by
            for tag, other, by, later_by, writer in zip(
                self.tags, later.tags, self.described_by, later.described_by, writers, strict=True
            )
        )

    def is_another(self, server: str, shard: int) -> None:
        """A server of a shard has another description. A replica is asked after all others then, until the
        collection is described again.
        """
        if server == self.described_by[shard]:
            self.is_stale = True
        else:
            self.behind.add(server)


class View:
    """A collection as one request sees it: all that it asks is of the same states of the shards, once those
    are fixed. Safe to use from several threads.
    """

    def __init__(self, known: KnownCollection, fan_out: FanOut) -> None:
        self.known = known
        self.fan_out = fan_out
        self._fixing = threading.Lock()
        self._fixed: KnownTerms | None = None

    @property
    def is_fixed(self) -> bool:
        """Whether the states are fixed."""
        return self._fixed is not None

    @property
    def terms(self) -> KnownTerms:
        """What is known at the states, or where they are not fixed yet, what the servers told last that are
        asked first.
        """
        return self._fixed or self.known.term_states.at(self.fan_out.servers)

    def is_pinned(self, terms: KnownTerms) -> bool:
        """Whether the states of these are the fixed ones."""
        return terms is self._fixed

    def has_heard(self, terms: KnownTerms) -> bool:
        """Whether these tell of every shard that is not lost."""
        return all(
            state is not None or self.fan_out.is_lost(shard) for shard, state in enumerate(terms.states)
        )

    def fix(self, reports: Sequence[TermReport | None], began: KnownTerms) -> KnownTerms:
        """Fixes the states at what shards told of themselves, where they are not fixed yet.

        began: what was known when they were asked.
        """
        with self._fixing:
            if self._fixed is None:
                self._fixed = self.known.term_states.after(
                    began, reports, self.fan_out.servers
                ) or self._anew([None if report is None else report.state for report in reports])
            return self._fixed

    def tell(self, words: Sequence[str] | None = None) -> tuple[KnownTerms, WordCounts | None]:
        """What is known once all shards were asked for what is not, and what they know of some words; fixes
        the states.
        """
        began = self.terms
        reports = self._reports(began.states if self.is_pinned(began) else None, began.states, words)
        terms = self.fix(reports, began)
        if any(report and report.state != terms.states[shard] for shard, report in enumerate(reports)):
            return self.tell(words)  # others fixed them meanwhile
        counts = [report.words for report in reports if report is not None and report.words is not None]
        if words is None or not counts:
            return terms, None
        together = WordCounts.together(counts)
        if len(counts) == len(self.fan_out):
            terms.words.keep(words, together)
        return terms, together

    def find(self, version: str) -> None:
        """Fixes the states at a version, as far as servers of the shards have it."""
        wanted, began = version.split(VERSIONS), self.terms
        if len(wanted) != len(self.fan_out):
            return
        reports = self._reports(None, began.states, None)
        while others := [
            shard
            for shard, report in enumerate(reports)
            if report is not None and report.version != wanted[shard] and self.fan_out.turn_away(shard)
        ]:
            for shard, report in enumerate(self._reports(None, began.states, None, of=others)):
                reports[shard] = report if shard in others else reports[shard]
        self.fix(reports, began)

    def read(
        self,
        operation: str,
        bodies: Sequence[bytes | None],
        read: Callable[[int, bytes], Answer],
    ) -> list[Answer | None]:
        """What shards answer that have a body, all at the states that are fixed, or that are by this."""
        if not self.is_fixed:
            self.tell()
        states = self.terms.states
        return self.fan_out.ask(
            operation, bodies, read, lambda shard, _server: query_of({"state": states[shard]})
        )

    def known_by(self, shard: int, server: str, states: Sequence[str | None]) -> str | None:
        """The state from which on a server is to tell what changed: that which it last told, or else that
        of the shard among these.
        """
        return self.known.term_states.state_of(shard, server) or states[shard]

    def _anew(self, states: Sequence[str | None]) -> KnownTerms:
        """What is known once all shards have told everything, those that have a state here at that."""
        nothing = self.known.term_states.nothing
        reports = self._reports(states, nothing.states, None, anew=True)
        later = self.known.term_states.after(nothing, reports, self.fan_out.servers)
        if later is None:
            raise ShardFailedError(
                f"a shard of {self.known.name!r} tells what changed, and was asked for everything",
                self.known.name,
            )
        return later

    def _reports(
        self,
        states: Sequence[str | None] | None,
        known: Sequence[str | None],
        words: Sequence[str] | None,
        *,
        anew: bool = False,
        of: Collection[int] | None = None,
    ) -> list[TermReport | None]:
        """What shards tell at these states, by default those of now. known: what they need not tell again;
        anew: whether that is nothing; of: which shards, by default all.
        """
        size, count = self.known.description.settings.vocabulary_size, len(words or ())

        def read(_shard: int, body: bytes) -> TermReport:
            return sound(decode(TermReport, body, T=count), size)

        def queries(shard: int, server: str) -> dict[str, str]:
            state = None if states is None else states[shard]
            return query_of({"state": state, "known": None if anew else self.known_by(shard, server, known)})

        body = encode(StatisticsRequest(None if words is None else tuple(words)))
        bodies = [body if of is None or shard in of else None for shard in range(len(known))]
        return self.fan_out.ask("statistics", bodies, read, queries)
