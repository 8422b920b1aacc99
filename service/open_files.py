"""How many files this process may have open, and how many of these the index may."""

from __future__ import annotations

import resource
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from index.errors import TooManyFilesError

SPARE_SHARE, MOST_SPARE = 8, 64  # an eighth of a low limit is left to logs, temporary files and the like


def allow_open_files() -> None:
    """Takes as many file descriptors as the system gives: each large segment maps some 25 files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with suppress(ValueError, OSError):  # macOS names no limit, and allows less
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def files_of_index() -> int:
    """How many the index may have open: connections take at most half of what the system allows."""
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if allowed == resource.RLIM_INFINITY:
        return sys.maxsize
    return allowed // 2 - min(MOST_SPARE, allowed // SPARE_SHARE)


@dataclass(frozen=True, slots=True)
class FileHolder:
    """Something that holds open files of the index.

    count: how many it holds; let_go: closes so many where it can, those first that were not used for long.
    """

    count: Callable[[], int]
    let_go: Callable[[int], None]


class FileBudget:
    """Keeps the open files of the index within its share, so that connections always find theirs.

    Safe to use from several threads.
    """

    def __init__(self, allowed: Callable[[], int] = files_of_index) -> None:
        """allowed: asked each time, as a server raises its limit when it starts."""
        self._allowed = allowed
        self._holders: list[FileHolder] = []
        self._lock = threading.Lock()
        self._reserved = 0

    def add(self, holder: FileHolder) -> None:
        """Counts this one, too; those that were added first let go first."""
        self._holders.append(holder)

    @contextmanager
    def room(self, files: int, what: str) -> Iterator[None]:
        """There is room for so many while the context lasts; in its end a holder has them, or nobody.

        Raises TooManyFilesError where others are in use that take it.
        """
        with self._lock:
            self._make_room(files, what)
            self._reserved += files
        try:
            yield
        finally:
            with self._lock:
                self._reserved -= files

    def _make_room(self, files: int, what: str) -> None:
        for holder in self._holders:
            excess = self._excess(files)
            if excess > 0:
                holder.let_go(excess)
        excess = self._excess(files)
        if excess > 0:
            raise TooManyFilesError(
                f"{what} takes {files} open files, {excess} more than are left of the {self._allowed()} that "
                "the index may have open; try again in a moment, or raise the limit (ulimit -n)"
            )

    def _excess(self, files: int) -> int:
        return self._reserved + sum(holder.count() for holder in self._holders) + files - self._allowed()
