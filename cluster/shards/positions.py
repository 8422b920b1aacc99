"""Positions of a collection over shards: one number a shard, as `3.17.2`."""

from __future__ import annotations

import re
from dataclasses import dataclass

_TEXT = re.compile(r"[0-9]{1,19}(\.[0-9]{1,19})*", re.ASCII)
_END = 2**63


@dataclass(frozen=True, slots=True)
class Positions:
    """The position of each shard, in order of shard."""

    numbers: tuple[int, ...]

    @staticmethod
    def none(shards: int) -> Positions:
        """Those before the first write."""
        return Positions((0,) * shards)

    @staticmethod
    def alone(shard: int, position: int, shards: int) -> Positions:
        """Those of a write to one shard, which says nothing of the others."""
        return Positions(tuple(position if each == shard else 0 for each in range(shards)))

    @staticmethod
    def parse(text: str, shards: int) -> Positions:
        """Raises ValueError for what is no position of so many shards."""
        if not _TEXT.fullmatch(text):
            raise ValueError(f"{text[:80]!r} is no position: write a number for each shard, as 3.17.2")
        position = Positions(tuple(map(int, text.split("."))))
        position.require(shards)
        if max(position.numbers) >= _END:
            raise ValueError(f"{text[:80]!r} has a number that does not fit in 63 bits")
        return position

    def require(self, shards: int) -> None:
        """Raises ValueError where there are so many shards now, and were others when it was read."""
        own = len(self.numbers)
        if own != shards:
            raise ValueError(
                f"{str(self)[:80]!r} is of {own} shard{'s' * (own > 1)}, and now there "
                f"{'are' if shards > 1 else 'is'} {shards}; read again what you depend on"
            )

    def __str__(self) -> str:
        return ".".join(map(str, self.numbers))

    def merged(self, other: Positions) -> Positions:
        """The later one of each shard."""
        return Positions(tuple(map(max, self.numbers, other.numbers)))
