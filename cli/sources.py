"""The sources that a command is given: files, folders, and standard input."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from tercet.cli.output import error_console
from tercet.index.errors import DuplicateDocumentError
from tercet.ingest.errors import SourceError

if TYPE_CHECKING:
    from tercet.ingest.sources.checks import Skipped

STDIN = "-"
STDIN_NAME = "standard input"


@dataclass(frozen=True, slots=True)
class GivenSources:
    """paths: of files and folders; stdin: the one of them that keeps standard input, if any."""

    paths: list[Path]
    stdin: Path | None = None

    def said(self, text: object) -> str:
        """A message about these paths, as who gave them knows them."""
        return str(text) if self.stdin is None else str(text).replace(str(self.stdin), STDIN_NAME)

    def print_skips(self, skips: Iterable[Skipped], skipped: int = 0) -> None:
        """Prints the records that are listed as left out, and how many more there were."""
        from tercet.ingest.sources.checks import LISTED_SKIPS

        for skip in skips:
            error_console().print(f"skipped {self.said(skip)}", markup=False, soft_wrap=True)
        if skipped > LISTED_SKIPS:
            error_console().print(f"and {skipped - LISTED_SKIPS:,} more")


@contextmanager
def given_sources(words: Sequence[str]) -> Iterator[GivenSources]:
    """What the arguments of a command name. `-` is standard input, kept in a file for as long as this lasts.

    Raises typer.BadParameter where that is named twice.
    """
    if words.count(STDIN) > 1:
        raise typer.BadParameter(f"{STDIN} is there twice", param_hint="SOURCE")
    if STDIN not in words:
        yield GivenSources([Path(word) for word in words])
        return
    from tercet.index.files.scratch import scratch_folder
    from tercet.ingest.sources.stdin import kept

    with scratch_folder() as folder:
        stdin = kept(sys.stdin.buffer, folder)
        sources = GivenSources([stdin if word == STDIN else Path(word) for word in words], stdin)
        try:
            yield sources
        except (SourceError, DuplicateDocumentError) as error:
            raise type(error)(sources.said(error)) from error
