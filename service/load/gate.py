"""Who is turned away at the wire, before anything is made of a request: all that costs is its head.

Three rules, and all let in whoever finds only few others in work.

The event loop is late. Every request takes some of its turns, so all wait for as long, those that are to be
refused among them: it takes in no more until it has caught up. That is so where the last beats were late, or
one very late. How long a request has waited is known from the kernel, since a late loop reads late, too.

Searches are alike, so Little's law tells how long one more would be in the server: as many as there are,
divided by how many are answered in a second. That counts whatever they wait for, the encoder, threads, the
loop, or processors that others use. Clients take turns there: of each other client as many come before one
more as the client that it is from has itself. A quarter of the longest wait is left for a second that is
slower than the last.

Texts to embed are of any number and length, but none waits less than the shortest: where that would wait too
long for the encoder, so would all. The others are judged by their tokens, once these are known.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable

from tercet.service.exceptions import OverloadedError
from tercet.service.load.admission import ANY_WAIT, Admission
from tercet.service.load.deadlines import NO_DEADLINE, Deadline, within
from tercet.service.load.loop import LoopDelay
from tercet.service.load.pace import Pace

LATE_SECONDS = 0.03  # over the last beats
VERY_LATE_SECONDS = 0.1  # once: refusals must not be late, too
FEW = 12  # in work, as of one browser: they cannot be what makes the loop late
SHARE = 0.75  # of the longest wait
FIRST_PER_SECOND = 50.0  # a guess, until answers are counted
SEARCHES = "/search"
EMBEDDINGS = frozenset(
    (
        "/embed",
        *("/api/embed", "/api/embeddings"),
        *("/jina/v1/embeddings", "/jina/v1/multi-vector"),
        *("/tei", "/tei/", "/tei/embed", "/tei/embed_all", "/tei/embed_sparse", "/tei/similarity"),
        *("/tei/v1/embeddings", "/v1/embeddings", "/v1/embeddings/", "/v2/embed"),
    )
)
PASSAGE = "passage"  # where a request's scope has it, among its `state`


class Passage:
    """One request that was let in: in work from when its body is here until its answer begins.

    How long a client takes to send the one and to read the other is no work. begun: whether its body is here.
    """

    __slots__ = ("_client", "_gate", "_over", "_path", "begun")

    def __init__(self, gate: Gate, path: str, client: str = "") -> None:
        self._gate = gate
        self._path = path
        self._client = client
        self.begun = self._over = False

    def begin(self) -> None:
        """Counts it, once."""
        if not self.begun:
            self.begun = True
            self._gate.begin(self._path, self._client)

    def end(self, *, answered: bool = False) -> None:
        """Counts it no more. answered: by work that was done for it, not by a refusal."""
        if not self._over:
            self._over = True
            if self.begun:
                self._gate.end(self._path, self._client, answered=answered)


class Gate:
    """Counts requests in work. Use from one event loop."""

    def __init__(
        self,
        loop: LoopDelay,
        max_wait_seconds: float,
        admission: Admission = ANY_WAIT,
        least_encoder_wait: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """admission: that of the encoder. least_encoder_wait: the seconds for which the shortest text of the
        client at hand would wait for it.
        """
        self._loop = loop
        self._admission = admission
        self._least_encoder_wait = least_encoder_wait
        self._limit_seconds = SHARE * max_wait_seconds
        self._pace = Pace(FIRST_PER_SECOND)
        self._answered = 0.0  # when a search was answered last, or the first of many came
        self.in_work = 0
        self._searches_of = Counter[str]()  # of each client that has some

    def require(self, path: str, waited_seconds: float, timeout: str | None, client: str = "") -> None:
        """Raises OverloadedError where a request is to be turned away.

        waited_seconds: since its bytes could be read; timeout: its header X-Request-Timeout.
        """
        if self.in_work < FEW:
            return
        late_seconds = max(self._loop.seconds, waited_seconds)
        if self._loop.mean_seconds > LATE_SECONDS or late_seconds > VERY_LATE_SECONDS:
            raise OverloadedError(
                f"the server is {late_seconds:.2f} s late with what it has to do; {LATE_SECONDS:g} s is the "
                "limit: try again in a second",
                1,
                "loop",
            )
        if path in EMBEDDINGS:
            self._admission.require(self._least_encoder_wait(), _deadline(timeout))
        if path == SEARCHES:
            wait_seconds = self._pace.seconds(self._ahead_of(client))
            limit_seconds = min(self._limit_seconds, _seconds(timeout))
            if wait_seconds > limit_seconds:
                excess_seconds = wait_seconds - limit_seconds
                raise OverloadedError(
                    f"{self._searches} searches are in work, and one more would take {wait_seconds:.1f} s; "
                    f"{limit_seconds:.1f} s is the limit ({SHARE:.0%} of the setting max_wait_seconds, or "
                    f"header X-Request-Timeout): try again in {math.ceil(excess_seconds)} s",
                    excess_seconds,
                    "wait",
                )

    def begin(self, path: str, client: str = "") -> None:
        """Counts a request."""
        self.in_work += 1
        if path == SEARCHES:
            self._searches_of[client] += 1
            if self._searches == FEW:
                self._answered = time.monotonic()

    def end(self, path: str, client: str = "", *, answered: bool) -> None:
        """Counts it no more, once."""
        self.in_work -= 1
        if path == SEARCHES:
            # Fewer tell how many came, not how many could be answered.
            if self._searches >= FEW and answered:
                now = time.monotonic()
                self._pace.observe(1, now - self._answered)
                self._answered = now
            self._searches_of[client] -= 1
            if not self._searches_of[client]:
                del self._searches_of[client]

    @property
    def _searches(self) -> int:
        """How many are in work."""
        return self._searches_of.total()

    def _ahead_of(self, client: str) -> int:
        """How many searches come before the next one of a client."""
        own = self._searches_of[client]
        return own + sum(min(count, own + 1) for name, count in self._searches_of.items() if name != client)

    @property
    def search_seconds(self) -> float:
        """How long a search that came now would take where many are in work."""
        return self._pace.seconds(self._searches) if self._searches >= FEW else 0.0


def _seconds(timeout: str | None) -> float:
    """Of a header; what is none is judged later."""
    try:
        return float(timeout) if timeout is not None else math.inf
    except ValueError:
        return math.inf


def _deadline(timeout: str | None) -> Deadline:
    """Of a header; none of one that is judged later."""
    seconds = _seconds(timeout)
    return within(seconds) if seconds > 0 else NO_DEADLINE
