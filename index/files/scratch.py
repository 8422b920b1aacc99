"""Folders for what is needed only while it is worked on, by default below the system's temporary folder.

Who is killed leaves its folder there, and its lock is free then: whoever makes the next folder removes it.
"""

from __future__ import annotations

import atexit
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from tercet.index.errors import SearchIndexError
from tercet.index.files.directory import remove_folder
from tercet.index.files.lock import ExclusiveLock

PREFIX = "tercet-scratch-"


@contextmanager
def scratch_folder(below: Path | None = None) -> Iterator[Path]:
    """An empty folder, which goes with the context. below: where else to make it. Raises OSError."""
    parent = Path(tempfile.gettempdir()) if below is None else below
    for left in parent.glob(f"{PREFIX}*"):
        with suppress(SearchIndexError, OSError), _lock_of(left):  # of a living process, or of another user
            remove_folder(left)
    with _new(parent) as folder:
        content = folder / "content"
        content.mkdir()
        try:
            yield content
        finally:
            remove_folder(folder)


def process_scratch_folder() -> Path:
    """An empty folder, which goes with the process. Raises OSError."""
    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(scratch_folder())


@contextmanager
def _new(parent: Path) -> Iterator[Path]:
    """A new folder, locked. One may be taken for left in the moment before it is locked."""
    with ExitStack() as stack:
        while True:
            folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
            with suppress(SearchIndexError):
                stack.enter_context(_lock_of(folder))
                break
        yield folder


def _lock_of(folder: Path) -> ExclusiveLock:
    return ExclusiveLock(folder / "LOCK", f"the folder {folder}")
