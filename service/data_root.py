"""The data root of a search server: its own while it runs, and writable."""

from __future__ import annotations

import tempfile
from pathlib import Path

from index.errors import CollectionBusyError
from index.lock import ExclusiveLock
from service.exceptions import DataRootInUseError, NotReadyError


class DataRoot:
    """Held by one search server at a time, which the operating system sees to: a killed one holds nothing.

    Builds of the command line need no lock here; each collection has its own.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = ExclusiveLock(folder / "service.lock", f"data root {folder}")

    def hold(self) -> None:
        """Takes it, and makes it where it is missing.

        Raises DataRootInUseError, or OSError where it cannot be written to.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        try:
            self._lock.acquire()
        except CollectionBusyError as error:
            raise DataRootInUseError(
                f"another server uses the data root {self._folder.resolve()}: stop it, or give this one "
                "a data root of its own (--data)"
            ) from error

    def release(self) -> None:
        """Lets another server have it."""
        self._lock.release()

    def require_writable(self) -> None:
        """Raises NotReadyError."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self._folder):
                pass
        except OSError as error:
            raise NotReadyError(f"the data root cannot be written to ({error.strerror})") from error
