"""The data root of a search server: its own while it runs, and what can be done there."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tercet.index.errors import CollectionBusyError
from tercet.index.files.lock import ExclusiveLock, is_locked
from tercet.index.wording import reason_of
from tercet.service.exceptions import DataRootError, DataRootInUseError, NotReadyError

LOOK_SECONDS = 1.0  # between two looks at whether it can be written to
LATE_SECONDS = 5.0  # without a look, after which its disk counts as hanging
TRIED_BYTES = 65_536  # written at each look: a full disk still takes names of empty files

LOCK_FILE = "service.lock"

WriteState = Literal["ready", "storage_full", "unavailable", "elsewhere"]


@dataclass(frozen=True, slots=True)
class Look:
    """What one look found. problem: why it cannot be read either; reason: why it cannot be written to.

    free_bytes: of its disk, for this process; None where that is not known.
    """

    problem: str | None = None
    writes: WriteState = "ready"
    reason: str = ""
    free_bytes: int | None = None


def served_at(folder: Path) -> str | None:
    """The URL of the server that holds a data root; None where there is none, or it cannot be told."""
    lock = folder / LOCK_FILE
    try:
        return lock.read_text(encoding="utf-8") or None if is_locked(lock) else None
    except OSError:
        return None


class DataRoot:
    """Held by one search server at a time, which the operating system sees to: a killed one holds nothing.

    Builds of the command line need no lock here; each collection has its own.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = ExclusiveLock(folder / LOCK_FILE, f"data root {folder}")
        self._last = Look()
        self._looked = time.monotonic()

    def hold(self) -> None:
        """Takes it, and makes it where it is missing.

        Raises DataRootInUseError, or DataRootError where it cannot be written to.
        """
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._lock.acquire()
            os.ftruncate(self._lock.fileno(), 0)  # a former server's address
        except CollectionBusyError as error:
            raise DataRootInUseError(
                f"another server uses the data root {self._folder.resolve()}: stop it, or give this one "
                "a data root of its own (--data)"
            ) from error
        except OSError as error:
            raise DataRootError(
                f"the data root {self._folder.resolve()} cannot be written to ({error.strerror}), and a "
                "server keeps its lock there: give it a folder that its user may write to (--data), whose "
                "collections/ may be mounted read-only"
            ) from error

    def tell_address(self, url: str) -> None:
        """Leaves the URL of the server that holds it for `served_at`; not where the disk is full."""
        with suppress(OSError):
            os.pwrite(self._lock.fileno(), url.encode(), 0)

    def release(self) -> None:
        """Lets another server have it."""
        self._lock.release()

    @property
    def last(self) -> Look:
        """What the last look found."""
        return self._last

    def look(self) -> None:
        """Tries to read and to write, for `writes` to tell."""
        self._last = self._look()
        self._looked = time.monotonic()

    def writes(self) -> WriteState:
        """Whether writes have what they need, by the last look, so that nobody waits for a disk that hangs.

        Raises NotReadyError where not even searches have.
        """
        if time.monotonic() - self._looked > LATE_SECONDS:
            raise NotReadyError(f"the data root has not answered for {LATE_SECONDS:g} s")
        if self._last.problem is not None:
            raise NotReadyError(f"the data root {self._last.problem}")
        return self._last.writes

    def require_writes(self) -> None:
        """Raises NotReadyError where writes have not what they need."""
        if self.writes() != "ready":
            raise NotReadyError(
                f"the data root cannot be written to ({self._last.reason}), and this server is ready only "
                "where it can (setting ready_requires)"
            )

    def _look(self) -> Look:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with os.scandir(self._folder) as entries:
                next(entries, None)
            free_bytes = shutil.disk_usage(self._folder).free
        except OSError as error:
            reason = reason_of(error)
            return Look(f"cannot be written to or read ({reason})", "unavailable", reason)
        try:
            with tempfile.TemporaryFile(dir=self._folder, buffering=0) as file:
                file.write(bytes(TRIED_BYTES))
        except OSError as error:
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            reason = reason_of(error)
            return Look(None, "storage_full" if full else "unavailable", reason, free_bytes)
        return Look(None, "ready", "", free_bytes)
