"""The lines of pages in the order in which they are read, without what is on every page."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import median

from tercet.ingest.texts.pdf_lines import Box, Line, PageCharacters

# Japanese and Chinese: what is written in columns.
_VERTICAL = re.compile("[\u3041-\u30ff\u3400-\u9fff\uf900-\ufaff]")
_MARKER = re.compile(r"\(?(?:\d{1,3}|[A-Za-z]|[ivx]{2,5})[.)]|[•◦▪‣●○■□–—*·-]")
_FARTHEST_MARKER = 8.0  # of a line's height, before the item's text
_NUMBER = re.compile(r"\d+")
_ROW_POINTS = 3
_LEAST_PAGES = 3
_SHARE_OF_PAGES = 0.4  # of left and right pages each may have heads of their own


def page_lines(page: PageCharacters) -> list[Line]:
    """The lines of a page as they are read: columns of vertical writing from the right to the left."""
    if _is_vertical(page):
        return _by_decks(_columns(page))
    return _with_markers(list(page.lines()))


def without_running(pages: Sequence[list[Line]]) -> list[list[Line]]:
    """Pages without their running heads and feet: what is the same at the edges of many of them."""
    edges = [_edges(lines) for lines in pages]
    counts = Counter(place for edge in edges for place in set(edge.values()))
    least = max(_LEAST_PAGES, _SHARE_OF_PAGES * len(pages))
    kept = [
        [line for line in lines if line not in edge or counts[edge[line]] < least]
        for lines, edge in zip(pages, edges, strict=True)
    ]
    return kept if any(kept) else list(pages)


def _edges(lines: list[Line]) -> dict[Line, tuple[str, int]]:
    """The lines of the first two and the last two rows of a page that are no larger than others: text and
    height, by which those of pages are compared. Numbers may differ in the first row and the last.
    """
    if not lines:
        return {}
    largest = median(line.box.height for line in lines) * 1.1
    rows = sorted({_row(line) for line in lines})
    outermost, edge = {rows[0], rows[-1]}, {*rows[:2], *rows[-2:]}
    return {
        line: (_NUMBER.sub("#", line.text) if _row(line) in outermost else line.text, _row(line))
        for line in lines
        if _row(line) in edge and line.box.height <= largest
    }


def _row(line: Line) -> int:
    return round(line.box.bottom / _ROW_POINTS)


def _with_markers(lines: list[Line]) -> list[Line]:
    """Lines with the number or the mark of a list before the item that stands beside it."""
    items = {index: line for index, line in enumerate(lines) if not _MARKER.fullmatch(line.text)}
    for marker in [line for line in lines if _MARKER.fullmatch(line.text)]:
        beside = [index for index, item in items.items() if _is_beside(marker.box, item.box)]
        if beside:
            nearest = min(beside, key=lambda index: items[index].box.left)
            items[nearest] = replace(items[nearest], text=f"{marker.text} {items[nearest].text}")
        else:
            index = next(place for place, line in enumerate(lines) if line is marker)
            items[index] = marker
    return [items[index] for index in sorted(items)]


def _is_beside(marker: Box, item: Box) -> bool:
    """Whether an item stands on the line of a marker, at its right."""
    near = marker.left < item.left <= marker.right + _FARTHEST_MARKER * marker.height
    return near and abs(item.bottom - marker.bottom) < marker.height / 2


def _is_vertical(page: PageCharacters) -> bool:
    """Whether most characters that may be written in columns stand below those before them."""
    boxes = [page.box(index) for index, mark in enumerate(page.marks) if mark and _VERTICAL.match(mark)]
    below = sum(_is_below(before, before, after) for before, after in pairwise(boxes))
    return below > len(boxes) / 2


def _columns(page: PageCharacters) -> list[Line]:
    """The columns of a page of vertical writing, and what else is on it, in the order of the file."""
    runs: list[dict[int, Box]] = []
    first = last = Box(0, 0, 0, 0)
    for index, mark in enumerate(page.marks):
        if not mark.strip():
            continue
        box = page.box(index)
        if not runs or not _goes_on(first, last, box):
            runs.append({})
            first = box
        runs[-1][index] = last = box
    return [_line(page, run) for run in runs]


def _goes_on(first: Box, last: Box, box: Box) -> bool:
    """Whether a column, or a line, goes on with a character. Digits may share the place of one character."""
    narrow = 1.3 * box.height
    if last.right - first.left <= narrow and _is_below(first, last, box):
        return True
    is_beside = abs(box.bottom - last.bottom) < 0.3 * last.height and 0 < box.left - last.left < narrow
    return is_beside and (not _is_column(first, last) or box.right - first.left <= narrow)


def _is_below(first: Box, last: Box, box: Box) -> bool:
    """Whether a character stands in the column of the first one, below the last one."""
    near = abs(box.left - first.left) < 0.4 * first.height
    return near and 0.3 * first.height < last.top - box.top < 2.5 * first.height


def _is_column(first: Box, last: Box) -> bool:
    return first.top - last.top > 0.3 * first.height


def _line(page: PageCharacters, run: dict[int, Box]) -> Line:
    """The column or line of these characters."""
    indices, boxes = list(run), list(run.values())
    first, last = boxes[0], boxes[-1]
    box = Box(first.left, last.bottom, last.right, first.top)
    if len(run) == 1 or _is_column(first, last):
        return Line("".join(page.marks[index] for index in indices), box, is_column=True)
    return Line("".join(page.marks[indices[0] : indices[-1] + 1]), box)


def _by_decks(lines: list[Line]) -> list[Line]:
    """Columns from the right to the left, those of the upper part of a page first; then what is no column."""
    decks: list[list[Line]] = []
    bottom = 0.0
    for column in sorted((line for line in lines if line.is_column), key=lambda line: -line.box.top):
        if not decks or column.box.top <= bottom:
            decks.append([])
            bottom = column.box.bottom
        decks[-1].append(column)
        bottom = min(bottom, column.box.bottom)
    columns = [line for deck in decks for line in sorted(deck, key=lambda line: -line.box.left)]
    others = [line for line in lines if not line.is_column]
    top = columns[0].box.top if columns else 0.0
    return [*(one for one in others if one.box.bottom >= top), *columns] + [
        one for one in others if one.box.bottom < top
    ]
