"""What a job may read: files and folders below `sources/` of the data root, named by their path there."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from tercet.ingest.errors import SourceError
from tercet.ingest.sources.files import source_files
from tercet.ingest.sources.formats import FileFormat
from tercet.service.exceptions import InvalidRequestError


def confined_sources(root: Path, sources: Sequence[str], format: FileFormat | None = None) -> list[Path]:
    """The files and folders that a client names; see `confined_source`."""
    return [confined_source(root, source, format) for source in sources]


def confined_source(root: Path, source: str, format: FileFormat | None = None) -> Path:
    """The file or folder that a client names by its path below `root`. format: of the files, if it is said.

    Raises InvalidRequestError where the path leaves `root`, also through a symbolic link, or where
    nothing that can be read as a source is there.
    """

    def refuse(why: str) -> InvalidRequestError:
        return InvalidRequestError(
            f"source {source[:200]!r} {why}; give a path below sources/ of the data root", "source"
        )

    parts = Path(source).parts
    if not parts or "\0" in source or Path(source).is_absolute() or ".." in parts:
        raise refuse("is not a plain relative path")
    try:
        resolved = (root / source).resolve(strict=True)
    except (OSError, RuntimeError, ValueError) as error:
        raise refuse("does not exist") from error
    if not resolved.is_relative_to(root.resolve()):
        raise refuse("leads outside")
    try:
        files = source_files(resolved, format)
    except SourceError as error:
        why = str(error).replace(f"{root.resolve()}{os.sep}", "")
        raise refuse(f"cannot be read ({why})") from error
    if any(not file.resolve().is_relative_to(root.resolve()) for file in files):
        raise refuse("leads outside")
    return resolved
