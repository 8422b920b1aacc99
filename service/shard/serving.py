"""What a shard answers to a router: bodies to bodies, in threads."""

from __future__ import annotations

from tercet.index.snapshot import Snapshot
from tercet.models.representations import Int64
from tercet.service.collections.readable import SearchTarget
from tercet.service.exceptions import InvalidRequestError
from tercet.service.shard.codec import decode_request, encode
from tercet.service.shard.counts import ToldCounts
from tercet.service.shard.description import ShardDescription
from tercet.service.shard.pins import BegunSearch, Pins
from tercet.service.shard.reading import ShardReading
from tercet.service.shard.records import (
    Begun,
    Candidates,
    CandidatesRequest,
    HitsRequest,
    PartsRequest,
    StatisticsRequest,
    TermReport,
)

CONTENT_BYTES = 16 << 20  # of one answer


class ShardServing:
    """A server as a shard: what it keeps for routers, and its answers. Safe to use from several threads."""

    def __init__(self) -> None:
        self._pins = Pins()
        self.reading = ShardReading(self._pins)
        self._told = ToldCounts()
        self._descriptions: dict[str, ShardDescription] = {}

    def description(self, target: SearchTarget[Snapshot]) -> bytes:
        """A collection's settings, what is stored for searches, and its languages."""
        snapshot = target.snapshot
        return ShardDescription.of(
            snapshot.settings, target.defaults, target.effort, snapshot.languages()
        ).message

    def candidates(
        self, name: str, target: SearchTarget[Snapshot], body: bytes, tag: str | None, state: str | None
    ) -> bytes:
        """What this shard proposes for a query; nothing where its description is another than the router's.

        tag: of the description that the router knows; state: that is asked for, by default the current one.
        Raises InvalidRequestError, InvalidQueryError, or ShardStateGoneError for a state that is asked for.
        """
        query = decode_request(CandidatesRequest, body).query
        if tag not in (None, self._tag(name, target)):
            return encode(Candidates())
        snapshot, at = self.reading.at(state, target)
        search = snapshot.shard_search(query)
        proposals = search.propose()
        return encode(Candidates(Begun(at, self._pins.begin(BegunSearch(name, search)), proposals)))

    def hits(self, name: str, body: bytes) -> bytes:
        """The exact scores of what is left of a search's candidates. Raises as `candidates`."""
        request = decode_request(HitsRequest, body)
        search = self._pins.search(request.search, name)
        numbers = None if request.numbers is None else _proposed(request.numbers, search.candidates)
        if request.wanted is None:
            return encode(search.all(numbers, request.group_by))
        content_bytes = min(request.content_bytes, CONTENT_BYTES)
        return encode(search.best(numbers, request.wanted, request.least, content_bytes))

    def parts(self, name: str, body: bytes) -> bytes:
        """What hits alone are told of. Raises as `candidates`."""
        request = decode_request(PartsRequest, body)
        search = self._pins.search(request.search, name)
        numbers = _proposed(request.numbers, search.candidates)
        return encode(search.parts(numbers, min(request.content_bytes, CONTENT_BYTES)))

    def statistics(
        self, name: str, target: SearchTarget[Snapshot], body: bytes, state: str | None, known: str | None
    ) -> bytes:
        """How many documents have each term, as far as the router does not know; and the same of some words.

        state: as for `candidates`, which it raises as; known: of which the router knows the counts of terms.
        """
        wanted = decode_request(StatisticsRequest, body)
        snapshot, at = self.reading.at(state, target)
        change = None
        if wanted.terms and snapshot.idf is not None and known != at.state:
            change = self._told.change(name, at.state, snapshot.idf, known)
        counts = None if wanted.words is None else snapshot.word_counts(wanted.words)
        return encode(TermReport(at, change, counts))

    def _tag(self, name: str, target: SearchTarget[Snapshot]) -> str:
        """The tag of what a search goes by; made anew only where that is another than the last time."""
        settings, defaults, effort = target.snapshot.settings, target.defaults, target.effort
        known = self._descriptions.get(name)
        if (
            known is None
            or known.settings is not settings
            or known.defaults is not defaults
            or known.effort is not effort
        ):
            known = self._descriptions[name] = ShardDescription.of(settings, defaults, effort)
        return known.tag


def _proposed(numbers: Int64, candidates: int) -> Int64:
    """Numbers of so many candidates. Raises InvalidRequestError."""
    if (numbers[1:] <= numbers[:-1]).any() or (
        len(numbers) and not 0 <= numbers[0] <= numbers[-1] < candidates
    ):
        raise InvalidRequestError(
            f"a message to a shard: numbers of candidates ascend, each once, from 0 to {candidates - 1}"
        )
    return numbers
