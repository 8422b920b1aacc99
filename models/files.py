"""Files that a crash or a full disk at any moment leaves whole: the former one or the new one."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def replace_file(path: Path, content: bytes) -> None:
    """Writes a file for all to read, on the disk before it takes the place of the one before it."""
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}.new")
    try:
        with partial.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        partial.chmod(0o644)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
