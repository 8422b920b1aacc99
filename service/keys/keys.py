"""Keys of the service: what one looks like, which settings hold them, and files of them."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from tercet.service.exceptions import SettingsError

# Each has a setting NAME_file beside it. None is a flag: every user of a machine can read command lines.
KEY_SETTINGS = ("api_keys", "read_keys", "encoder_key", "shards_key", "backend_key", "client_key")
KEY_ID_DIGITS = 12  # of a key's SHA-256 in hexadecimal: tells keys apart, and gives none away


def is_key(text: str) -> bool:
    """Whether the text can stand in an Authorization header: printable ASCII without spaces."""
    return bool(text) and text.isascii() and text.isprintable() and " " not in text


def digest_of(key: str) -> bytes:
    """The SHA-256 of a key, by which it is looked up."""
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()


def id_of(digest: bytes) -> str:
    """What a key is called in logs and metrics where it has no id of its own."""
    return digest.hex()[:KEY_ID_DIGITS]


def unread(error: OSError) -> str:
    """Why a file of keys was not read. In a container its user is not the one whose file it is."""
    if isinstance(error, PermissionError):
        return f"user {os.getuid()} may not read it; give it to that user (chown {os.getuid()})"
    return str(error.strerror)


def read_keys(path: Path) -> tuple[str, ...]:
    """The keys of a file, one a line; blanks around them and empty lines are dropped.

    Raises SettingsError, which names the file and the line and never a key, where the file cannot be read,
    holds no key, or holds what is none.
    """
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise SettingsError(f"key file {path}: {unread(error)}") from error
    keys = {number: line.strip() for number, line in enumerate(lines, start=1) if line.strip()}
    if not keys:
        raise SettingsError(f"key file {path} holds no key; write one a line")
    for number, key in keys.items():
        if not is_key(key):
            raise SettingsError(
                f"key file {path}, line {number}: a key must be printable ASCII without spaces"
            )
    return tuple(keys.values())
