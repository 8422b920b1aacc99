"""Bounds how deep the elements of a page nest.

A parser looks through all open elements for many of the tags that it meets, so a page of nothing but opening
tags takes time that grows with the square of its length. Browsers bound the depth, Chromium at 512.
"""

from __future__ import annotations

import re

MAX_DEPTH = 512
# Up to the next bracket of any kind, so that what never closes is looked at once.
_TAG = re.compile(r"<(/?)([a-zA-Z][^\s/<>]*+)[^<>]*+>")
# Elements without content, and those that the next one of their kind ends.
_FLAT = {
    *("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"),
    *("p", "li", "dd", "dt", "tr", "td", "th", "thead", "tbody", "tfoot", "option", "optgroup", "colgroup"),
}


def with_bounded_depth(page: str) -> str:
    """The page without the tags of elements that are nested deeper than `MAX_DEPTH`; their text stays."""
    if page.count("<") <= MAX_DEPTH:
        return page
    depth = 0

    def kept(tag: re.Match[str]) -> str:
        nonlocal depth
        if tag[2].lower() in _FLAT or tag[0].endswith("/>"):
            return tag[0]
        is_deep = depth > MAX_DEPTH if tag[1] else depth >= MAX_DEPTH
        depth = max(0, depth - 1) if tag[1] else depth + 1
        return " " if is_deep else tag[0]

    return _TAG.sub(kept, page)
