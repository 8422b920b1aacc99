"""Groups of texts of bounded size, so that a stream of any length is encoded in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

GROUP_ITEMS = 4096

T = TypeVar("T")


def groups(items: Iterable[T], text_of: Callable[[T], str], tokens: int) -> Iterator[list[T]]:
    """Consecutive items in groups whose texts have about this many tokens, at least one item each."""
    group: list[T] = []
    size = 0
    for item in items:
        group.append(item)
        size += estimated_tokens(text_of(item))
        if size >= tokens or len(group) >= GROUP_ITEMS:
            yield group
            group, size = [], 0
    if group:
        yield group


def estimated_tokens(text: str) -> int:
    """Tokens that a text may have: a third of its UTF-8 bytes, which fits alphabets and ideographs alike."""
    return len(text.encode("utf-8", "surrogatepass")) // 3 + 2
