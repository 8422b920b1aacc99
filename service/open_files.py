"""How many files this process may have open."""

from __future__ import annotations

import resource
from contextlib import suppress


def allow_open_files() -> None:
    """Takes as many file descriptors as the system gives: each large segment maps some 25 files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with suppress(ValueError, OSError):  # macOS names no limit, and allows less
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
