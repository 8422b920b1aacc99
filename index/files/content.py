"""What files hold: text, JSON, and checksums."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
from io import BufferedReader
from pathlib import Path
from typing import Any

from tercet.index.errors import DamagedIndexError, damaged

NO_FILES = (errno.ELOOP, errno.ENXIO)  # what the system says of a link to itself, and of a socket


def missing(path: Path) -> DamagedIndexError:
    """The error for a file of the index that is not there."""
    return damaged(path, "is missing")


def open_file(path: Path) -> BufferedReader:
    """Opens a file to be read. Raises OSError, and DamagedIndexError where there is something else: to open a
    pipe would wait for its other end.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError as error:
        if error.errno in NO_FILES:
            raise damaged(path, "is no file") from error
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise damaged(path, "is no file")
    return os.fdopen(descriptor, "rb")


def text_of(content: bytes, what: object) -> str:
    """Text in UTF-8. Raises DamagedIndexError, with what messages call its file, where it is none."""
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise damaged(what, "holds what is not UTF-8") from error


def json_bytes(value: Any) -> bytes:
    """A value as readable JSON."""
    return (json.dumps(value, ensure_ascii=False, indent=2) + "\n").encode()


def read_json_object(path: Path, remedy: str = "restore it or rebuild") -> dict[str, Any]:
    """Reads a JSON object. Raises FileNotFoundError, or DamagedIndexError, naming the remedy."""
    try:
        with open_file(path) as file:
            content = file.read()
        value = json.loads(content)
        if b"\\u" in content:  # in which halves of characters may be written, that no file can have again
            json_bytes(value)
    except (ValueError, RecursionError) as error:
        raise DamagedIndexError(f"{path} is not valid JSON ({error}); {remedy}") from error
    if not isinstance(value, dict):
        raise DamagedIndexError(f"{path} holds no JSON object; {remedy}")
    return value


def sha256_of(path: Path) -> str:
    """SHA-256 of a file's content, as hexadecimal digits. Raises DamagedIndexError where it is missing."""
    try:
        with open_file(path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError as error:
        raise missing(path) from error
