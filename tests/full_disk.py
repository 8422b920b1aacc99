"""A disk that is full, as the system tells who writes to it."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

FILLER = "filler"  # the name of a file that takes all space


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """No file may grow beyond so many bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def fill(disk: Path) -> None:
    """Takes all the space that a disk has left, for a file of it."""
    with (disk / FILLER).open("ab", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4096))
