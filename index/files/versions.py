"""What tells a file from one that was written at its path before or later."""

from __future__ import annotations

import os

FileVersion = tuple[int, int, int]
"""Inode, time in ns, size in bytes."""


def version_of(path: str) -> FileVersion | None:
    """None where there is no such file. path: a string, since to put a `Path` together takes longer."""
    try:
        stat = os.stat(path)  # noqa: PTH116 - looked at for each request
    except (FileNotFoundError, NotADirectoryError):
        return None
    return stat.st_ino, stat.st_mtime_ns, stat.st_size
