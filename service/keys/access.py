"""What whoever asks may do: a right, the collections, and limits."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import translate
from typing import Literal

from tercet.service.exceptions import ForbiddenError

Right = Literal["read", "write", "admin"]
RIGHTS: tuple[Right, ...] = ("read", "write", "admin")
"""Each has those before it: to read, to change documents, to change all else."""


class Names:
    """Names of collections and aliases, by shell patterns such as `a*`."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self.patterns = tuple(patterns)
        self._any = re.compile("|".join(map(translate, patterns)) or r"(?!)")  # no pattern fits nothing

    def __contains__(self, name: str) -> bool:
        """Whether one of the patterns fits a name."""
        return self._any.match(name) is not None

    def __eq__(self, other: object) -> bool:
        """By the patterns."""
        return isinstance(other, Names) and self.patterns == other.patterns

    def __hash__(self) -> int:
        """By the patterns."""
        return hash(self.patterns)


@dataclass(frozen=True, slots=True)
class Access:
    """What one key, or whoever asks a server without keys, may do.

    key: its id in logs and metrics, None without keys. collections: those whose names it may use, None for
    all. requests_per_second: its own limit in the place of the setting `key_requests_per_second`.
    """

    right: Right
    key: str | None = None
    collections: Names | None = field(default=None)
    requests_per_second: float | None = None

    def require(self, right: Right, what: str) -> None:
        """Raises ForbiddenError where the right is another one. what: is asked for, as a verb's phrase."""
        if RIGHTS.index(self.right) >= RIGHTS.index(right):
            return
        if self.right == "read":
            raise ForbiddenError(
                f"this key may only read, and not {what}: use one with the access {right}", "read_only_key"
            )
        raise ForbiddenError(
            f"this key may read and write documents, and not {what}: use one with the access {right}",
            "admin_key_required",
        )

    def sees(self, name: str) -> bool:
        """Whether it may use a collection or an alias of this name."""
        return self.collections is None or name in self.collections

    def require_name(self, name: str, param: str | None = None) -> None:
        """Raises ForbiddenError for the name of a collection or an alias that it may not use.

        param: the field of the request that has the name; None where the path has.
        """
        if not self.sees(name):
            raise ForbiddenError(
                f"this key may not use {name[:64]!r}: its collections do not have that name",
                "collection_not_allowed",
                param,
            )

    def require_all(self, what: str) -> None:
        """Raises ForbiddenError where it may not use all collections. what: tells of all, as a noun."""
        if self.collections is not None:
            raise ForbiddenError(
                f"{what} tells of all collections, and this key may not use all: use one without collections",
                "collection_not_allowed",
            )


EVERYTHING = Access("admin")
