"""Who is let in: a request that would wait longer than this server promises is refused before any work."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import count

from tercet.service.exceptions import DeadlineExceededError, OverloadedError
from tercet.service.load.clients import CLIENT
from tercet.service.load.deadlines import NO_DEADLINE, Deadline
from tercet.service.load.loop import LoopDelay

PREDICTED_SHARE = 0.5  # of the longest wait: others overtake, and the next second may be slower than the last

_numbers = count()


@dataclass(slots=True, eq=False)
class Ticket:
    """One request before the encoder, through all the calls that it makes there.

    later_tokens: of calls still to come. alone: whether no other request was in work when it came. admitted:
    whether one of its calls was taken, after which none is refused any more. number: tells which of two came
    first. client: whose request it is; turn: where it is among those of all clients, once it waits.
    """

    deadline: Deadline = NO_DEADLINE
    alone: bool = False
    later_tokens: int = 0
    admitted: bool = False
    number: int = field(default_factory=_numbers.__next__)
    client: str = field(default_factory=CLIENT.get)
    turn: int | None = None


@dataclass(frozen=True, slots=True)
class Admission:
    """The longest wait that a server lets anyone in for; loop: whose delay is part of every wait."""

    max_wait_seconds: float = math.inf
    loop: LoopDelay | None = None

    def require(self, wait_seconds: float, deadline: Deadline) -> None:
        """Raises OverloadedError where a request would wait longer than promised or than it has time.

        wait_seconds: the prediction without the loop, 0 where nobody is ahead. In overload every queue is as
        long as it may be, so that whoever is let in waits that long, or longer where it was wrong.
        Raises DeadlineExceededError past the deadline.
        """
        if self.loop is not None and wait_seconds > 0:  # an idle server takes any request
            wait_seconds += self.loop.wait_seconds
        if deadline.passed:
            raise too_late(wait_seconds)
        longest_seconds = PREDICTED_SHARE * self.max_wait_seconds
        allowed_seconds = min(longest_seconds, deadline.remaining_seconds)
        if wait_seconds > allowed_seconds:
            excess_seconds = wait_seconds - allowed_seconds
            limit = "this server's limit (half of the setting max_wait_seconds)"
            if allowed_seconds < longest_seconds:
                limit = "all the time it has (header X-Request-Timeout, setting request_timeout_seconds)"
            raise OverloadedError(
                f"the request would wait {wait_seconds:.1f} s; {allowed_seconds:.1f} s is {limit}: "
                f"try again in {math.ceil(excess_seconds)} s",
                excess_seconds,
                "wait",
            )


ANY_WAIT = Admission()


def too_late(wait_seconds: float) -> DeadlineExceededError:
    """The error of a request whose deadline passed. wait_seconds: how long one like it would wait now."""
    return DeadlineExceededError(
        "the time for this request was over before its work began (header X-Request-Timeout, setting "
        f"request_timeout_seconds): give it more, or try again in {max(1, math.ceil(wait_seconds))} s",
        wait_seconds,
    )
