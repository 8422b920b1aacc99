"""What a server asks of whatever knows which of several servers is to write."""

from __future__ import annotations

from typing import Protocol


class Lease(Protocol):
    """The right to write collections that several servers have, which ends without a sign of life."""

    @property
    def seconds(self) -> float:
        """After so long without a sign another server may have it."""

    @property
    def is_held(self) -> bool:
        """Whether it was this server's at the last look. Takes no time."""

    def keep(self) -> bool:
        """Gives a sign where it is this server's, or nobody's any more; returns whether it is its own. What
        fails is logged. Waits for the store.
        """
