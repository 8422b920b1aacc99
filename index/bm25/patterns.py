"""Regular expressions of words, compiled when a text first needs one: that takes longer than an import."""

from __future__ import annotations

from functools import cache

import regex


@cache
def compiled(pattern: str) -> regex.Pattern[str]:
    """The expression, whose sets may be nested, united and subtracted."""
    return regex.compile(pattern, regex.V1)
