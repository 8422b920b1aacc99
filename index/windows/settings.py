"""How a collection divides documents that are too long for one window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tercet.index.wording import shown

SMALLEST_WINDOW_TOKENS = 8
LARGEST_WINDOW_TOKENS = 2**20
OVERLAP_SHARE = 0.75  # of a window: beyond it, a token would be encoded more than four times


@dataclass(frozen=True, slots=True)
class WindowSettings:
    """Windows of at most `tokens` tokens, special tokens included, of which neighbours share `overlap`.

    Raises ValueError for a size or an overlap out of range.
    """

    tokens: int
    overlap: int

    def __post_init__(self) -> None:
        _require_within("window.tokens", self.tokens, SMALLEST_WINDOW_TOKENS, LARGEST_WINDOW_TOKENS)
        _require_within("window.overlap", self.overlap, 0, int(OVERLAP_SHARE * self.tokens))

    def __str__(self) -> str:
        return f"{self.tokens} tokens, overlap {self.overlap}"


WindowChoice = WindowSettings | Literal[False] | None
"""Of a new collection: these windows, False for none, or None for those by default."""


def default_windows(max_length: int) -> WindowSettings | None:
    """As long as the encoder reads, so that what it reads whole stays whole and nothing is cut off.

    None for an encoder that reads less than the smallest window.
    """
    tokens = min(max_length, LARGEST_WINDOW_TOKENS)
    return None if tokens < SMALLEST_WINDOW_TOKENS else WindowSettings(tokens, default_overlap(tokens))


def default_overlap(tokens: int) -> int:
    """The overlap of windows for which none is asked: a quarter of them."""
    return tokens // 4


def _require_within(name: str, value: object, least: int, most: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise ValueError(f"{name} is {shown(value)}; use an integer from {least} to {most}")
