"""Snapshots of the collections that an alias of several means, as one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import is_

from tercet.index.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class _United:
    parts: tuple[Snapshot, ...]
    snapshot: Snapshot

    def is_of(self, parts: Sequence[Snapshot | None]) -> bool:
        """Whether it is of these very snapshots."""
        return len(parts) == len(self.parts) and all(map(is_, parts, self.parts))


class UnitedSnapshots:
    """By alias, the latest of each."""

    def __init__(self) -> None:
        self._known: dict[str, _United] = {}

    def of(self, alias: str, parts: Sequence[Snapshot]) -> Snapshot:
        """The snapshots of an alias as one, made anew only where one of its snapshots changed.

        Raises UnlikeCollectionsError for those of collections that cannot be searched as one.
        """
        known = self._known.get(alias)
        if known is None or not known.is_of(parts):
            known = self._known[alias] = _United(tuple(parts), Snapshot.united(alias, parts))
        return known.snapshot

    def release(self, parts_of: Callable[[str], Sequence[Snapshot | None]]) -> None:
        """Lets go of those that are of other snapshots than an alias means now."""
        for alias, known in tuple(self._known.items()):
            if not known.is_of(parts_of(alias)):
                self._known.pop(alias, None)

    def clear(self) -> None:
        """Lets go of all."""
        self._known.clear()
