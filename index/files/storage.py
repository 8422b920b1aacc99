"""Files that survive a crash: forced to the disk, replaced atomically, with checksums."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from index.errors import DamagedIndexError


def missing(path: Path) -> DamagedIndexError:
    """The error for a file of the index that is not there."""
    return DamagedIndexError(f"{path} is missing; restore it or rebuild the collection")


def sync_file(path: Path) -> None:
    """Forces a file's content to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Forces a folder's entries to the disk, so that created, renamed and removed names last."""
    sync_file(folder)


def make_folder(folder: Path) -> None:
    """Makes a folder and those above it, and forces the names of those that were missing to the disk.

    What is forced within a folder is lost with the folder's own name.
    """
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for each in missing:
        sync_folder(each.parent)


def write_atomically(path: Path, pieces: Iterable[bytes]) -> None:
    """Replaces a file: after a crash it holds its former content or the new one, never a part."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.new")
    try:
        with temporary.open("xb") as file:
            file.writelines(pieces)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def json_bytes(value: Any) -> bytes:
    """A value as readable JSON."""
    return (json.dumps(value, ensure_ascii=False, indent=2) + "\n").encode()


def write_json_atomically(path: Path, value: Any) -> None:
    """Replaces a file by readable JSON."""
    write_atomically(path, [json_bytes(value)])


def read_json_object(path: Path, remedy: str = "restore it or rebuild") -> dict[str, Any]:
    """Reads a JSON object. Raises FileNotFoundError, or DamagedIndexError, naming the remedy."""
    try:
        value = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise DamagedIndexError(f"{path} is not valid JSON ({error}); {remedy}") from error
    if not isinstance(value, dict):
        raise DamagedIndexError(f"{path} holds no JSON object; {remedy}")
    return value


def sha256_of(path: Path) -> str:
    """SHA-256 of a file's content, as hexadecimal digits. Raises DamagedIndexError where it is missing."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError as error:
        raise missing(path) from error
