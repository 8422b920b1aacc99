"""What the servers of shards told of terms, kept between searches.

Servers of one shard may be at different states, and each search sees one of each shard. So what all shards
know together is kept for the last combinations of states, and counts of terms for each server of a shard that
has several: from one combination to another leads what differs between their states, and no shard is asked.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence

import numpy as np

from tercet.cluster.router.terms import KnownTerms, ShardTerms, TermChange
from tercet.index.sparse.term_totals import TermCounts
from tercet.models.representations import Int64
from tercet.service.shard.records import TermReport

COMBINATIONS = 8  # of states: of 250,000 terms each takes 4 MB


class TermStates:
    """Of one collection. Safe to use from several threads."""

    def __init__(self, nothing: KnownTerms, servers: Sequence[int]) -> None:
        """nothing: what is known before any shard was heard; servers: how many each shard has."""
        self.nothing = nothing
        self._lock = threading.Lock()
        self._has_replicas = [count > 1 for count in servers]
        self._last = nothing
        self._by_server: list[dict[str, ShardTerms]] = [{} for _ in servers]
        self._known: OrderedDict[tuple[str | None, ...], KnownTerms] = OrderedDict()

    def at(self, servers: Sequence[str]) -> KnownTerms:
        """What is known at the states that these servers of the shards, by their names, last told; of one
        that was never heard, at what the shard last told.
        """
        with self._lock:
            wanted = [
                self._by_server[number].get(servers[number], shard) if self._has_replicas[number] else shard
                for number, shard in enumerate(self._last.shards)
            ]
            states = tuple(shard.state for shard in wanted)
            terms = self._known.get(states)
            if terms is None:
                others = {
                    number: (shard, _between(self._last.shards[number], shard))
                    for number, shard in enumerate(wanted)
                    if shard.state != self._last.shards[number].state
                }
                terms = self._last.with_shards(others)
            return self._kept(terms)

    def state_of(self, shard: int, server: str) -> str | None:
        """What a server last told to be its state."""
        with self._lock:
            terms = self._by_server[shard].get(server)
            return None if terms is None else terms.state

    def after(
        self, began: KnownTerms, reports: Sequence[TermReport | None], servers: Sequence[str]
    ) -> KnownTerms | None:
        """What is known with what these servers told, None of one that told nothing; None where one told what
        changed since a state that is not known any more, or all of a shard that was known, so that all have
        to tell everything.

        began: what was known when they were asked.
        """
        with self._lock:
            changed: dict[int, tuple[ShardTerms, TermChange | None]] = {}
            for number, report in enumerate(reports):
                if report is None:
                    continue
                shard = began.shards[number]
                if report.state != shard.state:
                    led = self._led(number, shard, report)
                    if led is None:
                        return None
                    changed[number] = led
                self._by_server[number][servers[number]] = changed[number][0] if number in changed else shard
            self._last = later = began.with_shards(changed)
            return self._kept(later)

    def _led(
        self, number: int, before: ShardTerms, report: TermReport
    ) -> tuple[ShardTerms, TermChange | None] | None:
        """What a shard is by what was told, and what leads there from what it was before."""
        if self.nothing.totals is None:
            return ShardTerms(report.state, report.version, report.documents), None
        if not self._has_replicas[number]:
            shard = ShardTerms(report.state, report.version, report.documents)
            return (shard, report.added) if report.since == before.state else None
        known = {terms.state: terms for terms in (*self._by_server[number].values(), before, ShardTerms())}
        if report.state not in known:
            since = known.get(report.since)
            if since is None:
                return None
            counts = self._counts(since.counts, report.added)
            known[report.state] = ShardTerms(report.state, report.version, report.documents, counts)
        return known[report.state], _between(before, known[report.state])

    def _counts(self, counts: TermCounts | None, change: TermChange) -> TermCounts:
        """Those after a change. counts: None for no documents."""
        if counts is None:
            assert self.nothing.totals is not None  # noqa: S101 - of `_led`
            counts = self.nothing.totals.counts()
        terms, *added = change
        later = [column.copy() for column in counts]
        for column, more in zip(later, added, strict=True):
            column[terms] += more
        return later[0], later[1]

    def _kept(self, terms: KnownTerms) -> KnownTerms:
        """That of its states which is kept, with the words that are known there."""
        states = terms.states
        kept = self._known.setdefault(states, terms)
        self._known.move_to_end(states)
        if len(self._known) > COMBINATIONS:
            self._known.popitem(last=False)
        return kept


def _between(before: ShardTerms, after: ShardTerms) -> TermChange | None:
    """What leads from the counts of one state to those of another; None where they are not counted."""
    if after.counts is None:
        return None
    frequencies, masses = after.counts
    if before.counts is not None:
        frequencies, masses = frequencies - before.counts[0], masses - before.counts[1]
    terms: Int64 = np.flatnonzero((frequencies != 0) | (masses != 0))
    return terms.astype(np.int32), frequencies[terms], masses[terms]
