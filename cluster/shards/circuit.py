"""A shard that fails again and again is not asked for a moment, so that nobody waits for it in vain."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from service.exceptions import ShardUnavailableError

FAILURES = 3  # in a row, after which it is not asked
FIRST_PAUSE_SECONDS = 0.25  # doubled at each further failure
LONGEST_PAUSE_SECONDS = 5.0

log = logging.getLogger("tercet")


class Circuit:
    """Of one shard. While it is open requests fail at once, but for one after each pause. Use from one event
    loop.

    An answer of the shard, whatever it says, closes it.
    """

    def __init__(self, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        """clock: in seconds."""
        self._name = name
        self._clock = clock
        self._failures = 0
        self._fault = ""
        self._pause_seconds = FIRST_PAUSE_SECONDS
        self._asked_again = 0.0  # when the next request may try

    @property
    def is_open(self) -> bool:
        """Whether requests fail at once."""
        return self._failures >= FAILURES

    def require(self) -> None:
        """Raises ShardUnavailableError where the shard is not to be asked now."""
        if not self.is_open:
            return
        now = self._clock()
        if now < self._asked_again:
            raise ShardUnavailableError(
                f"shard {self._name} is not asked for a moment, since it failed {self._failures} times: "
                f"{self._fault}",
                self._name,
                sent=False,
                paused=True,
            )
        self._asked_again = now + self._pause_seconds  # one tries, the others go on failing

    def answered(self) -> None:
        """The shard answered a request."""
        if self.is_open:
            log.info("shard %s answers again", self._name)
        self._failures = 0
        self._pause_seconds = FIRST_PAUSE_SECONDS

    def failed(self, fault: str) -> None:
        """The shard gave no answer."""
        self._failures += 1
        self._fault = fault
        if not self.is_open:
            return
        if self._failures == FAILURES:
            log.warning("shard %s is not asked for a moment: %s", self._name, fault)
        else:
            self._pause_seconds = min(2 * self._pause_seconds, LONGEST_PAUSE_SECONDS)
        self._asked_again = self._clock() + self._pause_seconds
