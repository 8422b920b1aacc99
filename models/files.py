"""Files that a crash or a full disk at any moment leaves whole, the former one or the new one, and places
that one process at a time writes to.
"""

from __future__ import annotations

import fcntl
import logging
import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from safetensors import SafetensorError

log = logging.getLogger(__name__)

# What reading safetensors with NumPy raises, also for a type or a number of dimensions that it does not have.
UNREADABLE_ARRAYS = (SafetensorError, OSError, ValueError, TypeError, KeyError, AttributeError)
LONGEST_NAME = 255  # bytes, on any file system
UNFINISHED = ".unfinished-"  # begins the name of what a process has not ended yet, or never did


def is_file_name(name: object) -> bool:
    """Whether something that a file names may be the name of a file beside it, and nothing else."""
    return isinstance(name, str) and Path(name).name == name not in ("", "..") and _fits(name)


def _fits(name: str) -> bool:
    return "\0" not in name and len(name.encode(errors="replace")) <= LONGEST_NAME


@contextmanager
def alone(lock: Path, busy: str) -> Iterator[None]:
    """Holds a lock file, which is gone afterwards; waits for another process or thread that has it.

    busy: what is logged then.
    """
    descriptor = _locked(lock, busy)
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)
        os.close(descriptor)


def _locked(lock: Path, busy: str) -> int:
    while True:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o644)  # file systems of a network lock no folders
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            log.warning("%s; this one waits", busy)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        with suppress(FileNotFoundError):
            if os.fstat(descriptor).st_ino == lock.stat().st_ino:
                return descriptor
        os.close(descriptor)  # who had it removed the file meanwhile, and another may have made the next one


def force_open(descriptor: int) -> None:
    """Forces what an open file or folder holds to the disk itself."""
    if sys.platform == "darwin":  # where fsync stops at the disk's cache
        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
    else:
        os.fsync(descriptor)


def force(path: Path) -> None:
    """Forces a file's content to the disk, or a folder's entries: created, renamed and removed names."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        force_open(descriptor)
    finally:
        os.close(descriptor)


def replace_file(path: Path, content: bytes) -> None:
    """Writes a file for all to read, on the disk before it takes the place of the one before it."""
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}.new")
    try:
        with partial.open("xb") as file:
            file.write(content)
            file.flush()
            force_open(file.fileno())
        partial.chmod(0o644)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    force(path.parent)
