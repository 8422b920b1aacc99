"""What a published manifest holds: everything about one snapshot but the content of its files.

`manifests/000012.json` names for each file of a collection's folder its path there, size and SHA-256, and has
the index's own manifest in it.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tercet.cluster.snapshots.errors import DamagedSnapshotError
from tercet.index.catalog.layout import CollectionLayout
from tercet.index.catalog.lineage import Lineage, goes_on
from tercet.index.catalog.manifest import FileEntry, Manifest
from tercet.index.catalog.names import check_collection_name
from tercet.index.catalog.records import Record
from tercet.index.catalog.settings import CODEBOOK_FILE
from tercet.index.documents.datetimes import time_now
from tercet.index.errors import SearchIndexError
from tercet.index.files.content import json_bytes, sha256_of
from tercet.index.wording import shown

FORMAT = 1
_KEYS = {"format", "id", "collection", "pushed", "documents", "position", "snapshot", "files", "manifest"}
_OPTIONAL = {"lineage"}  # which older releases did not write
_HERE = CollectionLayout(Path())
BESIDE = tuple(
    path.as_posix()
    for path in (_HERE.settings, Path(CODEBOOK_FILE), _HERE.fields, _HERE.defaults, _HERE.effort)
)
"""What a collection's folder has beside segments and delete marks; all but the first may be missing."""


@dataclass(frozen=True, slots=True)
class PublishedSnapshot:
    """One snapshot of a collection on an object store.

    number: of its manifest there; id: random, of this publication; pushed: when, ISO 8601 in UTC; files: by
    path in the collection's folder; manifest: the index's own, which has the number as its name where it is
    fetched; snapshot: its name where it was pushed; lineage: of the collection, None of an older release.
    """

    number: int
    id: str
    collection: str
    pushed: str
    files: Mapping[str, FileEntry]
    manifest: Manifest
    snapshot: str
    lineage: Lineage | None = None

    @property
    def name(self) -> str:
        """The number as manifests have it, such as `000012`."""
        return name_of(self.number)

    @property
    def size_bytes(self) -> int:
        """Of all files."""
        return sum(file.size_bytes for file in self.files.values())

    @property
    def content(self) -> bytes:
        """The bytes of the manifest on the store."""
        return json_bytes(
            {
                "format": FORMAT,
                "id": self.id,
                "collection": self.collection,
                "pushed": self.pushed,
                "documents": self.manifest.documents,
                "position": self.manifest.ledger_position,
                "snapshot": self.snapshot,
                **({} if self.lineage is None else {"lineage": self.lineage.record}),
                "files": {path: asdict(entry) for path, entry in sorted(self.files.items())},
                "manifest": self.manifest.record,
            }
        )

    def numbered(self, number: int) -> PublishedSnapshot:
        """The same, to be published as this number."""
        return replace(self, number=number, manifest=replace(self.manifest, name=name_of(number)))

    def holds(self, other: PublishedSnapshot) -> bool:
        """Whether the other one, if published, would be the same collection, byte by byte."""
        return (self.collection, self.lineage, self.files, self.manifest.record) == (
            other.collection,
            other.lineage,
            other.files,
            other.manifest.record,
        )

    def goes_on_from(self, lineage: Lineage | None, position: int) -> bool:
        """Whether it has all that a copy of this lineage has, which is at a position, or takes its place."""
        return goes_on(self.lineage, self.manifest.ledger_position, lineage, position)


def name_of(number: int) -> str:
    """The name of a published manifest, without folder and ending."""
    return f"{number:06d}"


def snapshot_of(
    layout: CollectionLayout, manifest: Manifest, collection: str, number: int, lineage: Lineage | None
) -> PublishedSnapshot:
    """What is to be published as a number of a collection's folder, which has this manifest's files."""
    files = files_of(manifest)
    for path in BESIDE:
        here = layout.folder / path
        if here.exists():
            files[path] = FileEntry(here.stat().st_size, sha256_of(here))
    id, snapshot = secrets.token_hex(8), manifest.name
    made = PublishedSnapshot(number, id, collection, time_now(), files, manifest, snapshot, lineage)
    return made.numbered(number)


def read_snapshot(content: bytes, number: int, where: str) -> PublishedSnapshot:
    """The snapshot of a manifest's bytes. Raises DamagedSnapshotError, which says where it is."""
    try:
        record = json.loads(content)
        if not isinstance(record, dict):
            raise ValueError("it holds no object")
        if record["format"] != FORMAT:
            raise DamagedSnapshotError(
                f"{where} has format {shown(record['format'])}; this release reads {FORMAT}: use a newer one"
            )
        if record.keys() - _OPTIONAL != _KEYS:
            raise ValueError(
                f"keys {shown(sorted(record.keys() - _OPTIONAL ^ _KEYS))} are missing or unknown"
            )
        path = Path(f"{name_of(number)}.json")
        manifest = Manifest.of_record(Record.of(record["manifest"], path))
        lineage = Lineage.of_record(Record.of(record["lineage"], path)) if "lineage" in record else None
        files = {path: FileEntry(**_checked(entry)) for path, entry in record["files"].items()}
        datetime.fromisoformat(record["pushed"]).astimezone(UTC)
        check_collection_name(record["collection"])
        _require_same(manifest, files)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, SearchIndexError) as error:
        raise DamagedSnapshotError(
            f"{where} is no manifest of a snapshot ({error!s:.200}); pull an older one, or remove it and "
            "push again"
        ) from error
    return PublishedSnapshot(
        number,
        record["id"],
        record["collection"],
        record["pushed"],
        files,
        manifest,
        record["snapshot"],
        lineage,
    )


def files_of(manifest: Manifest) -> dict[str, FileEntry]:
    """The files that an index's manifest names, by path in the collection's folder."""
    files: dict[str, FileEntry] = {}
    for segment in manifest.segments:
        folder = _HERE.segment(segment.id)
        files |= {(folder / name).as_posix(): entry for name, entry in segment.files.items()}
        if segment.deletes is not None:
            deletes = segment.deletes
            files[(_HERE.deletes / deletes.file).as_posix()] = FileEntry(deletes.size_bytes, deletes.sha256)
    return files


def _require_same(manifest: Manifest, files: Mapping[str, FileEntry]) -> None:
    """Raises ValueError where the list of files is another than the index's manifest has."""
    beside = {path: entry for path, entry in files.items() if path in BESIDE}
    if {**files_of(manifest), **beside} != files:
        raise ValueError("its files are others than those of the manifest in it")
    settings = beside.get(BESIDE[0])
    if settings is None or settings.sha256 != manifest.settings_sha256:
        raise ValueError(f"{BESIDE[0]} is not the one that the manifest was written with")


def _checked(entry: Any) -> dict[str, Any]:
    size, digest = entry["size_bytes"], entry["sha256"]
    if type(size) is not int or size < 0:
        raise ValueError(f"{shown(size)} is no size")
    if len(digest) != 64 or set(digest) - set("0123456789abcdef"):
        raise ValueError(f"{shown(digest)} is no SHA-256")
    return {"size_bytes": size, "sha256": digest}
