"""What the JSON files of a collection share: their format version, and checks of keys."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from index.errors import DamagedIndexError

FORMAT_VERSION = 1


def check_version(record: Mapping[str, Any], path: Path) -> None:
    """Raises DamagedIndexError, naming the file, for another format version."""
    version = record.get("format_version")
    if version != FORMAT_VERSION or isinstance(version, bool):
        raise DamagedIndexError(
            f"{path} has format version {version!r}; this release reads version {FORMAT_VERSION}: "
            "rebuild the collection, or use the release that wrote it"
        )


def check_keys(record: Mapping[str, Any], expected: set[str], path: Path) -> None:
    """Raises DamagedIndexError, naming the file, for a missing or an unknown key."""
    if record.keys() != expected:
        missing, unknown = sorted(expected - record.keys()), sorted(record.keys() - expected)
        raise DamagedIndexError(f"{path}: keys missing: {missing}, unknown: {unknown}; restore it or rebuild")
