"""How many files this process may have open, and how many of these the index may."""

from __future__ import annotations

import resource
import sys
from contextlib import suppress

from tercet.index.errors import TooManyFilesError

LEAST_FILES = 128
SPARE_SHARE, LEAST_SPARE, MOST_SPARE = 8, 32, 64  # for the process itself, temporary files, jobs and the like


def allow_open_files() -> None:
    """Takes as many file descriptors as the system gives."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with suppress(ValueError, OSError):  # macOS names no limit, and allows less
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def require_open_files() -> None:
    """Raises TooManyFilesError where the system gives too few for a server."""
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if 0 <= allowed < LEAST_FILES:  # below 0 it is any number
        raise TooManyFilesError(
            f"this process may have {allowed} files open, and a server takes {LEAST_FILES} at least: raise "
            "the hard limit to 1024 or more (ulimit -Hn, LimitNOFILE=, or --ulimit nofile=)"
        )


def files_of_index() -> int:
    """How many the index may have open: connections take at most half of what the system allows.

    Segments hold none, as their files are mapped; collections that are written hold some each.
    """
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if allowed == resource.RLIM_INFINITY:
        return sys.maxsize
    return allowed // 2 - min(MOST_SPARE, max(LEAST_SPARE, allowed // SPARE_SHARE))
