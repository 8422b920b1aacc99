"""Bounds the requests in work."""

from __future__ import annotations

from tercet.service.exceptions import OverloadedError

# Small answers that need no encoder; a search node asks its workers for the last two before all else.
ALWAYS_SERVED = {"/health", "/ready", "/tei/health", "/metrics", "/info", "/tokenizer"}


class Places:
    """How many requests are in work.

    One is while the server has something to do for it: not while its body arrives, nor while its client takes
    the answer, so that slow clients leave the places to others.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.taken = 0

    def require_free(self) -> None:
        """Raises OverloadedError where no place is free for one more."""
        if self.taken >= self._limit:
            raise self._overloaded()

    def require_own(self) -> None:
        """Raises OverloadedError where others came while the body of this one arrived."""
        if self.taken > self._limit:
            raise self._overloaded()

    def _overloaded(self) -> OverloadedError:
        return OverloadedError(
            f"{self._limit} requests are in work, the limit (setting max_concurrent_requests): "
            "try again in a second",
            1,
            "requests",
        )
