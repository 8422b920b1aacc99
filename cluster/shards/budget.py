"""How many requests more than were asked for a shard may get, so that asking twice never doubles the load."""

from __future__ import annotations

SHARE = 0.05  # of the requests
MOST = 10.0  # that are saved up


class HedgeBudget:
    """A bucket that each request adds a twentieth to, and each further one takes a whole from. It is empty at
    first: so never are there more further ones than that share. Use from one event loop.
    """

    def __init__(self) -> None:
        self._saved = 0.0

    def asked(self) -> None:
        """A request was asked."""
        self._saved = min(MOST, self._saved + SHARE)

    def take(self) -> bool:
        """Whether one more may be asked, which then is spent."""
        if self._saved < 1 - 1e-9:  # twenty twentieths are one
            return False
        self._saved -= 1
        return True
