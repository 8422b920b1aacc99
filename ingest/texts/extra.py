"""What is said where a package of the extra `files` is missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tercet.ingest.errors import SourceError


@contextmanager
def needed_for(what: str) -> Iterator[None]:
    """Raises SourceError that says how to get it where an import within the block fails."""
    try:
        yield
    except ImportError as error:
        raise SourceError(
            f'{what} needs a package that is not here ({error}): pip install "tercet[files]"'
        ) from error
