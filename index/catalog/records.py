"""What the JSON files of a collection share: checks of format version and keys."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from index.errors import DamagedIndexError


def check_version(record: Mapping[str, Any], newest: int, path: Path) -> int:
    """The format version of a file, from 1 to `newest`. Raises DamagedIndexError, naming it, for another."""
    version = record.get("format_version")
    if not isinstance(version, int) or isinstance(version, bool) or not 1 <= version <= newest:
        raise DamagedIndexError(
            f"{path} has format version {version!r}; this release reads versions up to {newest}: "
            "rebuild the collection, or use the release that wrote it"
        )
    return version


def check_keys(record: Mapping[str, Any], expected: set[str], path: Path) -> None:
    """Raises DamagedIndexError, naming the file, for a missing or an unknown key."""
    if record.keys() != expected:
        missing, unknown = sorted(expected - record.keys()), sorted(record.keys() - expected)
        raise DamagedIndexError(f"{path}: keys missing: {missing}, unknown: {unknown}; restore it or rebuild")
