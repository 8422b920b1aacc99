"""An exclusive lock on a file, which the operating system releases when its process dies."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tercet.index.errors import CollectionBusyError, CollectionNotFoundError

LOOKS, LOOK_SECONDS = 2, 0.001  # `is_locked` has the lock for some microseconds


class ExclusiveLock:
    """Locks a file against every other holder, in this process or another, without waiting; as a context
    manager, for as long as the context lasts.
    """

    def __init__(self, path: Path, what: str) -> None:
        self._path = path
        self._what = what
        self._descriptor: int | None = None

    def __enter__(self) -> ExclusiveLock:
        self.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def acquire(self) -> None:
        """Takes the lock.

        Raises CollectionBusyError where another holds it, CollectionNotFoundError where its folder is gone.
        """
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        except FileNotFoundError as error:
            raise CollectionNotFoundError(f"{self._what} does not exist (any more)") from error
        try:
            _lock(descriptor)
            # The folder may have been deleted, or deleted and created again, since the file was opened.
            if os.fstat(descriptor).st_ino != self._path.stat().st_ino:
                raise BlockingIOError
        except (BlockingIOError, FileNotFoundError) as error:
            os.close(descriptor)
            raise CollectionBusyError(
                f"{self._what} is being written or deleted by another process or thread; try again later"
            ) from error
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor

    def fileno(self) -> int:
        """The descriptor of a lock that is held; a child that inherits it holds the lock, too."""
        assert self._descriptor is not None  # noqa: S101 - asked for while it is held
        return self._descriptor

    def release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _lock(descriptor: int) -> None:
    """Raises BlockingIOError where another holds the lock, and not only looks whether it is held."""
    for _ in range(LOOKS):
        with suppress(BlockingIOError):
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        time.sleep(LOOK_SECONDS)
    return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def is_locked(path: Path) -> bool:
    """Whether somebody holds the lock of a file, or that cannot be told. One that is missing nobody holds."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


@contextmanager
def waiting_lock(path: Path) -> Iterator[None]:
    """Holds the lock of a file that is never removed; waits for another holder, which takes milliseconds."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
