"""Which collections were deleted below a root, by their names: `deleted.json`.

So one that is made anew in the place of a deleted one may be published in its place, while one that was made
anew as a disk was lost may not. Callers that write keep others from making names below the root.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from tercet.index.catalog.lineage import MOST_FORMER, Lineage
from tercet.index.catalog.records import FORMAT_VERSION
from tercet.index.files.directory import write_json_atomically

DELETED_FILE = "deleted.json"
MOST_DELETED = 1000


def note_deleted(root: Path, name: str, lineage: Lineage | None) -> None:
    """Notes that the collection of a name was deleted; one of an older release has no lineage."""
    if lineage is None:
        return
    deleted = {id: former for id, former in _deleted(root).items() if id != name}
    deleted[name] = [*lineage.former, lineage.id][-MOST_FORMER:]
    _write_deleted(root, dict(list(deleted.items())[-MOST_DELETED:]))


def take_deleted(root: Path, name: str) -> tuple[str, ...]:
    """The ids of deleted collections that the next one of their name takes the place of."""
    deleted = _deleted(root)
    former = deleted.pop(name, None)
    if former is None:
        return ()
    _write_deleted(root, deleted)
    return tuple(former)


def was_deleted(root: Path, name: str) -> bool:
    """Whether the collection of a name was deleted here, and not lost."""
    return name in _deleted(root)


def _deleted(root: Path) -> dict[str, list[str]]:
    """By name. Where it cannot be read, a collection that is made anew is published only by force."""
    try:
        record = json.loads((root / DELETED_FILE).read_bytes())
        return {str(name): [str(id) for id in former] for name, former in record["deleted"].items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}


def _write_deleted(root: Path, deleted: Mapping[str, list[str]]) -> None:
    write_json_atomically(root / DELETED_FILE, {"format_version": FORMAT_VERSION, "deleted": deleted})
