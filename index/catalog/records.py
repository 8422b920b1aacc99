"""The JSON objects in the files of a collection, read key by key."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tercet.index.errors import DamagedIndexError
from tercet.index.files.content import read_json_object
from tercet.index.wording import shown

FORMAT_VERSION = 1  # of every JSON file of a collection
RESTORE = "restore it or rebuild"


@dataclass(frozen=True, slots=True)
class Record:
    """An object, and the file that it is from. What is not as this package writes it raises
    DamagedIndexError, which names the file, the value, and what to do.
    """

    values: Mapping[str, Any]
    path: Path
    remedy: str = RESTORE

    @staticmethod
    def read(path: Path, remedy: str = RESTORE) -> Record:
        """The object that a file holds. Raises FileNotFoundError, too."""
        return Record(read_json_object(path, remedy), path, remedy)

    @staticmethod
    def of(value: object, path: Path) -> Record:
        """A value that came from a file and must be an object."""
        if not isinstance(value, dict):
            raise DamagedIndexError(f"{path}: a record is no object; {RESTORE}")
        return Record(value, path)

    def damaged(self, what: str) -> DamagedIndexError:
        """That the file is damaged, and how."""
        return DamagedIndexError(f"{self.path}: {what}; {self.remedy}")

    def require_version(self) -> None:
        """Checks that the format version is the one that this release reads."""
        version = self.values.get("format_version")
        if version != FORMAT_VERSION or isinstance(version, bool):
            raise DamagedIndexError(
                f"{self.path} has format version {shown(version)}; this release reads version "
                f"{FORMAT_VERSION}: use the release that wrote it, else {self.remedy}"
            )

    def require_keys(self, expected: Collection[str]) -> None:
        """Checks that these are there, and no others."""
        missing, unknown = sorted({*expected} - self.values.keys()), sorted(self.values.keys() - {*expected})
        if missing:
            raise self.damaged(f"keys missing: {shown(missing)}, unknown: {shown(unknown)}")
        if unknown:
            raise self.damaged(
                f"keys unknown: {shown(unknown)}; use the release that wrote it where that is newer"
            )

    def with_usual(self, values: Mapping[str, Any]) -> Record:
        """With these for keys that are not there."""
        return replace(self, values={**values, **self.values})

    def count(self, key: str, least: int = 0, most: float = math.inf) -> int:
        """A whole number within limits."""
        value = self.values[key]
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            limits = f"of at least {least}" if most == math.inf else f"from {least} to {most}"
            raise self.damaged(f"{key} is {shown(value)}, no whole number {limits}")
        return value

    def number(self, key: str, most: float, least: float = 0) -> float:
        """A number within limits."""
        value = self.values[key]
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
            raise self.damaged(f"{key} is {shown(value)}, no number from {least:g} to {most:g}")
        return float(value)

    def text(self, key: str, pattern: re.Pattern[str]) -> str:
        """A string of this form."""
        value = self.values[key]
        if not isinstance(value, str) or not pattern.fullmatch(value):
            raise self.damaged(f"{key} {shown(value)} is not of the form {pattern.pattern}")
        return value

    def one_of(self, key: str, values: Collection[Any]) -> Any:
        """One of some strings."""
        value = self.values[key]
        if value not in values:
            raise self.damaged(f"{key} is {shown(value)}; it is one of {', '.join(values)}")
        return value

    def part(self, key: str) -> Record:
        """An object within this one."""
        return self._part(key, self.values[key])

    def parts(self, key: str) -> list[Record]:
        """A list of objects."""
        values = self.values[key]
        if not isinstance(values, list):
            raise self.damaged(f"{key} is no list")
        return [self._part(key, value) for value in values]

    def _part(self, key: str, value: Any) -> Record:
        if not isinstance(value, dict):
            raise self.damaged(f"{key} is no object")
        return replace(self, values=value)
