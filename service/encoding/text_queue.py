"""The order in which the texts of waiting requests are encoded.

Requests with few tokens left come first: queries overtake documents, and what has begun is finished. Of those
of like size clients take turns, by tokens; those of one client stay in order of arrival. A batch that
overtakes the oldest request is followed by one in order of turns, so that none starves.
"""

from __future__ import annotations

from bisect import insort
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass
from operator import attrgetter

import numpy as np

from tercet.models.representations import Int64, Output, Representations, TokenBatch
from tercet.service.load.admission import Ticket

LAST_BATCHES = 16
SHORT_TOKENS = 64  # whatever has fewer is of one size; then each size is twice the one before


def size_of(tokens: int) -> int:
    """The size of a request, coarsely, so that it is not overtaken by all that have one token less."""
    return (tokens // SHORT_TOKENS).bit_length()


@dataclass(frozen=True, slots=True)
class Slice:
    """Consecutive texts of one call within a batch."""

    call: QueuedCall
    start: int
    stop: int

    @property
    def tokens(self) -> int:
        """How many all its texts have."""
        return sum(self.call.lengths[self.start : self.stop])

    @property
    def whole(self) -> bool:
        """Whether these are all texts of their call."""
        return self.stop - self.start == len(self.call.lengths)


class QueuedCall:
    """The texts of one call to the encoder, longest first so that batches pad little; `answer` is awaited."""

    def __init__(
        self,
        tokens: TokenBatch,
        outputs: Sequence[Output],
        adapter: str | None,
        ticket: Ticket,
    ) -> None:
        # None: as they came, as one text does.
        self._order: Int64 | None = None if len(tokens) == 1 else np.argsort(-tokens.lengths, kind="stable")
        self.tokens = tokens if self._order is None else tokens.take(self._order)
        self.lengths: list[int] = self.tokens.lengths.tolist()
        self.outputs = outputs
        self.adapter = adapter
        self.ticket = ticket
        self.answer: Future[list[Representations]] = Future()
        self.began: float | None = None  # when its first text went to the encoder, of the monotonic clock
        self.parts: list[Representations] = []
        self.left_tokens: int = sum(self.lengths)
        self._taken = 0

    @property
    def left(self) -> bool:
        """Whether some of its texts are in no batch yet."""
        return self._taken < len(self.lengths)

    @property
    def number(self) -> int:
        """Tells which of two requests came first."""
        return self.ticket.number

    @property
    def turn(self) -> int:
        """Where the request is among those of all clients."""
        return self.ticket.turn or 0

    @property
    def request_tokens(self) -> int:
        """Tokens in no batch yet, those of the request's later calls among them."""
        return self.left_tokens + self.ticket.later_tokens

    @property
    def size(self) -> int:
        """The size class of the request, by what is left of it."""
        return size_of(self.request_tokens)

    def take(self, budget: int, *, force_first: bool) -> Slice:
        """The next texts that fit the budget; at least one if `force_first`."""
        start = self._taken
        while self._taken < len(self.lengths):
            length = self.lengths[self._taken]
            if length > budget and not (force_first and self._taken == start):
                break
            budget -= length
            self.left_tokens -= length
            self._taken += 1
        return Slice(self, start, self._taken)

    def fail(self, error: Exception) -> None:
        """Answers with the error, unless it is answered already or nobody waits any more."""
        with suppress(InvalidStateError):
            self.answer.set_exception(error)

    def add(self, part: Representations) -> None:
        """Takes the next texts' representations, and answers once all are there."""
        self.parts.append(part)
        if not self.left:
            with suppress(InvalidStateError):  # it has failed, or its caller left
                self.answer.set_result(self.parts)

    def join(self) -> Representations:
        """All parts, in the caller's order."""
        joined = Representations.concatenate(self.parts)
        return joined if self._order is None else joined.take(np.argsort(self._order, kind="stable"))


class TextQueue:
    """Calls that wait for the encoder."""

    def __init__(self) -> None:
        self._calls: list[QueuedCall] = []  # in order of turns
        self._ends = dict[str, int]()  # of the turns that each client has had or waits for
        self._now = 0  # in turns; never less than before, as requests whose later calls come keep theirs
        self._overtaken = False
        self._overtaking = (
            0.0  # the share of the last batches that overtook the oldest request, at most a half
        )

    def __len__(self) -> int:
        return len(self._calls)

    def __iter__(self) -> Iterator[QueuedCall]:
        return iter(self._calls)

    @property
    def tokens(self) -> int:
        """Tokens that wait here."""
        return sum(call.left_tokens for call in self._calls)

    def tokens_of(self, client: str) -> int:
        """Tokens of one client that wait here."""
        return sum(call.left_tokens for call in self._calls if call.ticket.client == client)

    def add(self, call: QueuedCall) -> None:
        """Queues a call; a request's later calls have the position of its first.

        Turns are tokens: a client's next request begins where its last one ends, and not before the first
        that waits. It is start-time fair queueing (Goyal, Vin and Cheng, IEEE/ACM Transactions on Networking
        5(5), 1997).
        """
        ticket = call.ticket
        first = self._calls[0].turn if self._calls else max(self._ends.values(), default=0)
        self._now = max(self._now, first)
        if ticket.turn is None:
            self._ends = {client: end for client, end in self._ends.items() if end > self._now}
            ticket.turn = max(self._now, self._ends.get(ticket.client, 0))
            self._ends[ticket.client] = ticket.turn + call.request_tokens
        insort(self._calls, call, key=attrgetter("turn", "number"))

    def remove(self, call: QueuedCall) -> None:
        """Forgets the texts of a call that are in no batch yet."""
        if call in self._calls:
            self._calls.remove(call)

    def tokens_ahead(self, tokens: int, budget: int, client: str = "") -> int:
        """Tokens that are encoded before a new request of so many or beside it, for a client.

        budget: of a batch. Of those that come after it, as many will overtake it as did lately overtake
        others; those with the fewest tokens nobody overtakes.
        """
        if not self._calls:
            return 0
        size = size_of(tokens)
        no_larger = sum(call.request_tokens for call in self._calls if call.size <= size)
        # Between two batches of those with fewer left comes one in order of arrival; others share its own.
        rest = budget * (1 + self._overtaken)
        ahead = min(self._tokens_before(tokens, client), 2 * no_larger + rest)
        return int(ahead / (1 - self._overtaking)) if size else ahead

    def next_batch(self, budget: int) -> list[Slice]:
        """Texts of so many tokens at most, but at least one text; none where nothing waits."""
        self._calls = [call for call in self._calls if not call.answer.done()]
        if not self._calls:
            return []
        oldest = self._calls[0]
        if self._overtaken:
            batch = _fill(self._calls, budget)
        else:
            shortest_first = sorted(self._calls, key=attrgetter("size"))
            batch = _fill(_that_end(shortest_first, budget) or shortest_first, budget)
        self._overtaken = all(part.call is not oldest for part in batch)
        self._overtaking += (self._overtaken - self._overtaking) / LAST_BATCHES
        self._calls = [call for call in self._calls if call.left]
        return batch

    def _tokens_before(self, tokens: int, client: str) -> int:
        """Tokens that come before the last of so many that a client adds: of others as many as of its own."""
        waiting: Counter[str] = Counter()
        for call in self._calls:
            waiting[call.ticket.client] += call.request_tokens
        own = waiting.pop(client, 0)
        return own + sum(min(other, own + tokens) for other in waiting.values())


def _that_end(calls: Iterable[QueuedCall], budget: int) -> list[QueuedCall]:
    """The first calls as far as a batch holds all that is left of them.

    No others go with them: that would only let these wait for a larger batch.
    """
    ending = []
    for call in calls:
        budget -= call.request_tokens
        if budget < 0:
            break
        ending.append(call)
    return ending


def _fill(calls: Iterable[QueuedCall], budget: int) -> list[Slice]:
    batch: list[Slice] = []
    for call in calls:
        part = call.take(budget, force_first=not batch)
        if part.start == part.stop:
            break
        batch.append(part)
        budget -= part.tokens
    return batch
