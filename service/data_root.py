"""The data root of a search server: its own while it runs, and writable."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from index.errors import CollectionBusyError
from index.files.lock import ExclusiveLock
from service.exceptions import DataRootInUseError, NotReadyError

LOOK_SECONDS = 1.0  # between two looks at whether it can be written to
LATE_SECONDS = 5.0  # without a look, after which its disk counts as hanging


class DataRoot:
    """Held by one search server at a time, which the operating system sees to: a killed one holds nothing.

    Builds of the command line need no lock here; each collection has its own.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = ExclusiveLock(folder / "service.lock", f"data root {folder}")
        self._problem: str | None = None
        self._looked = time.monotonic()

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

    def look(self) -> None:
        """Tries to write, for `require_writable` to tell."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self._folder):
                self._problem = None
        except OSError as error:
            self._problem = f"cannot be written to ({error.strerror})"
        self._looked = time.monotonic()

    def require_writable(self) -> None:
        """Raises NotReadyError by the last look, so that nobody waits for a disk that hangs."""
        if time.monotonic() - self._looked > LATE_SECONDS:
            raise NotReadyError(f"the data root has not answered for {LATE_SECONDS:g} s")
        if self._problem is not None:
            raise NotReadyError(f"the data root {self._problem}")
