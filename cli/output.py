"""What commands print: tables for people, JSON for programs, and one line on standard error for failures."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from tercet.index.candidates import Document, Hit
    from tercet.service.search.highlights import Highlight, HitHighlights

EXCERPT_LINES = 2  # that a text may take
SIDES = ("dense", "sparse", "colbert")
LARGEST_ROUNDING = 1e-3  # of a sum of parts that are rounded to six digits


def console() -> Console:
    """Standard output; 80 columns where it is no terminal and COLUMNS says nothing else."""
    return Console(highlight=False)


def error_console() -> Console:
    """Standard error: progress, remarks, failures."""
    return Console(stderr=True, highlight=False)


def print_json(value: object) -> None:
    """One JSON object on one line of standard output."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, allow_nan=False) + "\n")
    sys.stdout.flush()


def print_failure(message: str) -> None:
    """Prints the line that says why a command failed."""
    sys.stderr.write(f"Error: {one_line(message)}\n")
    sys.stderr.flush()


def print_warning(message: str) -> None:
    """One line about what was done, but may not be as wished."""
    sys.stderr.write(f"Warning: {one_line(message)}\n")
    sys.stderr.flush()


def one_line(text: str) -> str:
    """Text without line breaks and control characters, which could move a terminal's cursor."""
    return _flat(text).strip()


def _flat(text: str) -> str:
    return re.sub(" +", " ", "".join(c if c.isprintable() else " " for c in text))


def print_hits(
    hits: Sequence[Hit],
    out: Console,
    first: int = 1,
    highlights: Sequence[HitHighlights] | None = None,
) -> None:
    """A page of results: rank, from the first one's, id, the score, its parts, how the document begins.

    highlights: what is underlined in them.
    """
    others = [
        name
        for name in ("bm25", "boost", "reranker")
        if any(getattr(hit.scores, name) is not None for hit in hits)
    ]
    sides = [*SIDES, *others]
    table = Table(box=None, padding=(0, 1), expand=True, header_style="bold", row_styles=("", ""))
    table.add_column("#", justify="right", style="dim")
    table.add_column("score", justify="right", style="bold")
    for side in sides:
        table.add_column(side, justify="right", style="cyan")
    table.add_column("document", ratio=1)
    numbers: list[tuple[str, ...]] = [("#", "score", *sides)]
    for rank, hit in enumerate(hits, start=first):
        scores = (getattr(hit.scores, side) for side in sides)
        parts = ("–" if score is None else f"{score:.3f}" for score in scores)
        numbers.append((str(rank), f"{hit.score:.3f}", *parts))
    # What is left of a line beside the columns of numbers; every column has a blank on both sides.
    taken = sum(2 + max(map(len, column)) for column in zip(*numbers, strict=True))
    for row, hit in enumerate(hits):
        marks = None if highlights is None else highlights[row]
        table.add_row(*numbers[1 + row], _described(hit, max(20, out.width - taken - 2), marks))
    out.print(table)


def print_formula(hits: Sequence[Hit], weights: Mapping[str, float], out: Console) -> None:
    """How the score is made of its parts, where these are added up, but with other weights than 1.

    weights: of each side that the collection has.
    """
    if all(weight == 1 for weight in weights.values()):
        return
    best, boost = hits[0], hits[0].scores.boost
    parts = sum(weight * (getattr(best.scores, side) or 0.0) for side, weight in weights.items())
    if abs(parts + (boost or 0.0) - best.score) > LARGEST_ROUNDING:
        return  # ranks were fused, or a re-ranker scored
    terms = [side if weight == 1 else f"{weight:g} × {side}" for side, weight in weights.items() if weight]
    out.print(f" score = {' + '.join([*terms, *([] if boost is None else ['boost'])])}", style="dim")


def _described(hit: Hit, cells: int, marks: HitHighlights | None) -> Text:
    """Id, collection where there are several, title and the place of a passage, then in at most EXCERPT_LINES
    lines of so many cells how the text begins, or the window that matches best.
    """
    document, window = hit.document, hit.window
    head = Text(one_line(document.id), style="green")
    if document.collection is not None:
        head.append(f"  {document.collection}", style="dim")
    if document.title:
        title = _marked(document.title, [] if marks is None else marks.title)
        title.stylize_before("bold")
        head.append("  ").append_text(title)
    link = _link(document)
    if link is not None:
        head.append(f"  {one_line(link)}", style="dim")
    start, end = (0, None) if window is None else (window.start, window.end)
    text = _marked(document.text, [] if marks is None else marks.text, start, end)
    lines = text[: cells * (EXCERPT_LINES + 1)].wrap(Console(width=cells), cells)
    if len(lines) > EXCERPT_LINES:
        last = lines[EXCERPT_LINES - 1]
        last.truncate(cells - 1)
        last.append("…")
    return Text("\n").join([head, *(line for line in lines[:EXCERPT_LINES])])


def _link(document: Document) -> str | None:
    """Where a passage is, if its id does not say so itself."""
    source, anchor = document.metadata.get("source"), document.metadata.get("anchor")
    if not isinstance(source, str) or not isinstance(anchor, str):
        return None
    link = f"{source}#{anchor}"
    return None if document.id.startswith(link) else link


def _marked(text: str, marks: Sequence[Highlight], start: int = 0, end: int | None = None) -> Text:
    """A text, or a part of it, in one line, with the marks that lie in it."""
    end = len(text) if end is None else end
    shown, position = Text("…" if start else ""), end - len(text[start:end].lstrip())
    for mark in marks:
        if position <= mark["start"] and mark["end"] <= end:
            shown.append(_flat(text[position : mark["start"]]))
            shown.append(_flat(text[mark["start"] : mark["end"]]), "underline")
            position = mark["end"]
    return shown.append(_flat(text[position:end]).rstrip())


def counted(count: int, singular: str, plural: str | None = None) -> str:
    """How many of something, such as `1 document` and `2 documents`. plural: by default with an s."""
    return f"{count:,} {singular if count == 1 else plural or singular + 's'}"


def megabytes(size: int) -> str:
    """Bytes for people: as many decimals as a small size needs."""
    return f"{size / 1e6:,.1f} MB" if size >= 1e5 else f"{size / 1e3:,.1f} kB"


def print_pairs(pairs: Mapping[str, Any], out: Console) -> None:
    """Names and values, one pair a line, however long the value, so that it can be copied."""
    width = max(map(len, pairs), default=0)
    for name, value in pairs.items():
        shown = f"{value:,}" if type(value) is int else one_line(str(value))
        out.print(Text.assemble((name.ljust(width), "dim"), "  ", shown), soft_wrap=True)
