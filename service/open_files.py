"""How many files this process may have open, and how many of these the index may."""

from __future__ import annotations

import resource
import sys
from contextlib import suppress

SPARE_SHARE, MOST_SPARE = 8, 64  # an eighth of a low limit is left to logs, temporary files and the like


def allow_open_files() -> None:
    """Takes as many file descriptors as the system gives."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with suppress(ValueError, OSError):  # macOS names no limit, and allows less
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def files_of_index() -> int:
    """How many the index may have open: connections take at most half of what the system allows.

    Segments hold none, as their files are mapped; collections that are written hold some each.
    """
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if allowed == resource.RLIM_INFINITY:
        return sys.maxsize
    return allowed // 2 - min(MOST_SPARE, allowed // SPARE_SHARE)
