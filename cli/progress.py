"""How far long work is: a bar on a terminal, plain lines elsewhere, JSON lines for the service."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

from tercet.cli import options
from tercet.cli.output import error_console, print_json
from tercet.ingest.progress import BuildProgress

Report = Callable[[BuildProgress], None]

LINES_EVERY_SECONDS = 5.0
JSON_EVERY_SECONDS = 0.5


@contextmanager
def build_progress(kind: options.ProgressKind) -> Iterator[Report]:
    """A function that shows progress; "auto" is a bar on a terminal and lines elsewhere."""
    if kind == "auto":
        kind = "bar" if sys.stderr.isatty() else "lines"
    if kind == "bar":
        with _bar() as report:
            yield report
    elif kind == "lines":
        yield _seldom(_print_line, LINES_EVERY_SECONDS)
    elif kind == "json":
        yield _seldom(_print_json_line, JSON_EVERY_SECONDS)
    else:
        yield lambda _: None


@contextmanager
def count_progress(work: str, things: str) -> Iterator[Callable[[int, int], None]]:
    """A function that shows how many things of how many are done: a bar, or now and then a line."""
    if not sys.stderr.isatty():
        yield _seldom_counted(things)
        return
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=None), TaskProgressColumn())
    with Progress(
        *columns, TextColumn("{task.completed:,.0f} " + things), console=error_console()
    ) as progress:
        task = progress.add_task(work, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def _seldom_counted(things: str) -> Callable[[int, int], None]:
    shown_at = time.monotonic()

    def report(done: int, total: int) -> None:
        nonlocal shown_at
        if time.monotonic() - shown_at >= LINES_EVERY_SECONDS:
            shown_at = time.monotonic()
            sys.stderr.write(f"{done / total:.0%}  {done:,}/{total:,} {things}\n")
            sys.stderr.flush()

    return report


@contextmanager
def _bar() -> Iterator[Report]:
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=None), TaskProgressColumn())
    with Progress(*columns, TextColumn("{task.fields[numbers]}"), console=error_console()) as progress:
        task = progress.add_task("Building", total=1.0, numbers="")

        def report(now: BuildProgress) -> None:
            work = now.phase.capitalize()
            progress.update(task, description=work, completed=now.fraction, numbers=_numbers(now))

        yield report


def _seldom(show: Report, every_seconds: float) -> Report:
    """`show`, at most once in so many seconds, but always when a phase after the first begins."""
    shown_at, phase = time.monotonic(), None

    def report(now: BuildProgress) -> None:
        nonlocal shown_at, phase
        begins, phase = phase not in (None, now.phase), now.phase
        if begins or time.monotonic() - shown_at >= every_seconds:
            shown_at = time.monotonic()
            show(now)

    return report


def _print_line(now: BuildProgress) -> None:
    numbers = _numbers(now)
    sys.stderr.write(f"{now.phase} {now.fraction:.0%}{numbers and f'  {numbers}'}\n")
    sys.stderr.flush()


def _print_json_line(now: BuildProgress) -> None:
    print_json(
        {
            "phase": now.phase,
            "fraction": round(now.fraction, 4),
            "documents_done": now.documents,
            "documents_total": now.total,
            "tokens": now.tokens,
            "skipped": now.skipped,
        }
    )


def _numbers(now: BuildProgress) -> str:
    """What is encoded; nothing before."""
    if now.phase not in ("encoding", "indexing"):
        return ""
    total = "" if now.total is None else f"/{now.total:,}"
    parts = [f"{now.documents:,}{total} document{'' if now.documents == 1 == (now.total or 1) else 's'}"]
    if now.seconds > 0:
        parts.append(f"{now.documents / now.seconds:,.0f} documents/s")
        if now.tokens:
            parts.append(f"{now.tokens / now.seconds:,.0f} tokens/s")
    if now.phase == "encoding" and 0 < now.fraction < 1:
        parts.append(f"{duration(now.seconds * (1 - now.fraction) / now.fraction)} left")
    return ", ".join(parts)


def duration(seconds: float) -> str:
    """A time for people: seconds, minutes or hours."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
