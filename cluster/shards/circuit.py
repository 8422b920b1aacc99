"""A shard that fails again and again is not asked for a moment, so that nobody waits for it in vain."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable

from tercet.service.exceptions import ShardUnavailableError

FAILURES = 3  # in a row, after which it is not asked
FIRST_PAUSE_SECONDS = 0.25  # doubled where it fails again as soon as it is asked
LONGEST_PAUSE_SECONDS = 5.0
PATIENCE_SECONDS = 1.0  # a shard that is silent for less may only have been given too little time
SHORT_SECONDS = 0.1  # a wait of less tells nothing
UNWANTED_SECONDS = 10.0  # after which nobody looks any more whether it answers

log = logging.getLogger("tercet")


class Circuit:
    """Of one shard. While it is open requests fail at once, and somebody is to look whether the shard answers
    again: see `pause_seconds`. Use from one event loop.

    An answer of the shard, whatever it says, closes it.
    """

    def __init__(self, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        """clock: in seconds."""
        self._name = name
        self._clock = clock
        self._failures = 0
        self._fault = ""
        self._silent_since = math.inf  # when the first request began that got no answer
        self._wanted = -math.inf  # when a request failed at once last
        self.pause_seconds = FIRST_PAUSE_SECONDS  # before each look

    @property
    def is_open(self) -> bool:
        """Whether requests fail at once."""
        return self._failures >= FAILURES

    @property
    def is_wanted(self) -> bool:
        """Whether requests have failed at once lately."""
        return self._clock() < self._wanted + UNWANTED_SECONDS

    def require(self) -> None:
        """Raises ShardUnavailableError where the shard is not to be asked now."""
        if not self.is_open:
            return
        self._wanted = self._clock()
        raise ShardUnavailableError(
            f"shard {self._name} is not asked for a moment, since it failed {self._failures} times: "
            f"{self._fault}",
            self._name,
            sent=False,
            paused=True,
        )

    def answered(self) -> None:
        """The shard answered a request."""
        if self.is_open:
            log.info("shard %s answers again", self._name)
        self._failures = 0
        self._silent_since = math.inf
        self.pause_seconds = FIRST_PAUSE_SECONDS

    def failed(self, fault: str) -> None:
        """The shard gave no answer."""
        if self.is_open:  # of many requests that were under way as it stopped, which tell nothing new
            return
        self._failures += 1
        self._fault = fault
        if self.is_open:
            self._wanted = self._clock()
            log.warning("shard %s is not asked for a moment: %s", self._name, fault)

    def silent(self, fault: str, seconds: float) -> None:
        """A request waited in vain for so long. Such waits count together until there is an answer, as far as
        they are of use: each may have been too short by itself.
        """
        if seconds < SHORT_SECONDS:
            return
        now = self._clock()
        self._silent_since = min(self._silent_since, now - seconds)
        if now >= self._silent_since + PATIENCE_SECONDS:
            self.failed(fault)

    def let_ask(self, *, answers: bool) -> None:
        """Requests may ask again, and one that fails opens it again.

        answers: whether the shard answered who looked; then it is open for longer the next time. Else nobody
        wanted to know.
        """
        self._failures = FAILURES - 1
        if answers:
            log.info("shard %s answers again", self._name)
            self.pause_seconds = min(2 * self.pause_seconds, LONGEST_PAUSE_SECONDS)
