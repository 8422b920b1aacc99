"""Where the records are within the values of a JSON file, as somebody says it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tercet.ingest.errors import SourceError
from tercet.ingest.sources.json_kinds import kind_of
from tercet.ingest.sources.unclear_columns import SHOWN_CHARACTERS


class RecordPath:
    """Keys that lead from a value to its records. On the way and at the end each element of a list counts.

    A value in which they lead nowhere has no records.
    """

    def __init__(self, path: Path, keys: Sequence[str]) -> None:
        """path: of the file, for messages."""
        self.keys = tuple(keys)
        self._path = path
        self._records = 0
        self._missing: tuple[str, object] | None = None  # the first key that was not there, and where not

    def records(self, value: Any, keys: Sequence[str] | None = None) -> Iterator[Any]:
        """The records of a value. keys: those that are left to it, by default all."""
        left = self.keys if keys is None else keys
        if isinstance(value, list):
            for element in value:
                yield from self.records(element, left)
        elif not left:
            self._records += 1
            yield value
        elif isinstance(value, Mapping) and left[0] in value:
            yield from self.records(value[left[0]], left[1:])
        elif self._missing is None:
            self._missing = left[0], value

    def require_some(self) -> None:
        """Raises SourceError, which says what is there instead, where no value had any records."""
        if self._records:
            return
        why = "that list is empty"
        if self._missing is not None:
            key, value = self._missing
            keys = ", ".join(value) if isinstance(value, Mapping) else ""
            there = f"the keys there are {keys}"[:SHOWN_CHARACTERS] if keys else f"there is {kind_of(value)}"
            why = f"there is no {key!r:.200}; {there}"
        raise SourceError(f"{self._path}: no records at {'.'.join(self.keys)!r:.200} (--records): {why}")
