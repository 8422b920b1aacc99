"""The manifest of a snapshot: its segments, with size and checksum of every file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from index.catalog.records import FORMAT_VERSION, check_keys, check_version
from index.dense.index import DenseKind
from index.errors import DamagedIndexError
from index.files.storage import missing, read_json_object, write_json_atomically

_MANIFEST_NAME = re.compile(r"[0-9]{6,12}")
_SEGMENT_ID = re.compile(r"[a-z0-9-]{1,64}")
_FILE_NAME = re.compile(r"[a-z0-9][a-z0-9_.]{0,63}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_MANIFEST_KEYS = {"format_version", "settings_sha256", "documents", "segments", "deletes", "ledger_position"}


@dataclass(frozen=True, slots=True)
class FileEntry:
    """Size and SHA-256 of one file."""

    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class SegmentEntry:
    """One immutable segment: its folder's name, counts, resolved dense kind, and every file.

    windows: of all its documents, None in a collection without them.
    """

    id: str
    documents: int
    tokens: int
    dense_kind: DenseKind
    files: Mapping[str, FileEntry]
    windows: int | None = None


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a snapshot consists of. `name` is the file's stem, such as "000007"; `settings_sha256` is the
    checksum of `collection.json`.

    Format version 1 has no deletes and no ledger position yet: both are null in the file.
    """

    name: str
    settings_sha256: str
    segments: tuple[SegmentEntry, ...]

    @property
    def documents(self) -> int:
        """Documents of all segments."""
        return sum(segment.documents for segment in self.segments)

    @property
    def tokens(self) -> int:
        """Tokens of all segments."""
        return sum(segment.tokens for segment in self.segments)

    def is_marked(self, mark: str) -> bool:
        """Whether the writer that was given this mark wrote it."""
        return any(segment.id.endswith(f"-{mark}") for segment in self.segments)

    def write(self, path: Path) -> None:
        """Writes the manifest."""
        write_json_atomically(
            path,
            {
                "format_version": FORMAT_VERSION,
                "settings_sha256": self.settings_sha256,
                "documents": self.documents,
                "segments": [_segment_record(segment) for segment in self.segments],
                "deletes": None,
                "ledger_position": None,
            },
        )

    @staticmethod
    def read(path: Path) -> Manifest:
        """Reads a manifest. Raises DamagedIndexError, naming the file, where anything is unexpected."""
        try:
            record = read_json_object(path)
        except FileNotFoundError as error:
            raise missing(path) from error
        check_version(record, path)
        check_keys(record, _MANIFEST_KEYS, path)
        if record["deletes"] is not None or record["ledger_position"] is not None:
            raise DamagedIndexError(
                f"{path}: deletes and ledger_position must be null in version {FORMAT_VERSION}"
            )
        if not isinstance(record["segments"], list):
            raise DamagedIndexError(f"{path}: segments is no list; restore it or rebuild")
        manifest = Manifest(
            path.stem,
            _sha256(record["settings_sha256"], path),
            tuple(_parse_segment(segment, path) for segment in record["segments"]),
        )
        if record["documents"] != manifest.documents:
            raise DamagedIndexError(
                f"{path} counts {record['documents']!r} documents, but its segments have {manifest.documents}"
            )
        if len({segment.id for segment in manifest.segments}) != len(manifest.segments):
            raise DamagedIndexError(f"{path} names a segment twice; restore it or rebuild")
        return manifest


def segment_id(manifest: str, number: int, mark: str) -> str:
    """The name of a segment's folder: the manifest that it is written for, its place, its writer's mark."""
    return f"{manifest}-{number:04d}-{mark}"


def is_manifest_name(name: str) -> bool:
    """Whether this is the name of a manifest: 6 to 12 digits."""
    return _MANIFEST_NAME.fullmatch(name) is not None


def _segment_record(segment: SegmentEntry) -> dict[str, Any]:
    return {
        "id": segment.id,
        "documents": segment.documents,
        **({} if segment.windows is None else {"windows": segment.windows}),
        "tokens": segment.tokens,
        "dense_kind": segment.dense_kind,
        "files": {
            name: {"size_bytes": entry.size_bytes, "sha256": entry.sha256}
            for name, entry in sorted(segment.files.items())
        },
    }


def _parse_segment(record: object, path: Path) -> SegmentEntry:
    if not isinstance(record, dict):
        raise DamagedIndexError(f"{path}: a segment is no object; restore it or rebuild")
    expected = set(SegmentEntry.__slots__)
    check_keys(record, expected if record.get("windows") is not None else expected - {"windows"}, path)
    identifier, kind, files = record["id"], record["dense_kind"], record["files"]
    if not isinstance(identifier, str) or not _SEGMENT_ID.fullmatch(identifier):
        raise DamagedIndexError(f"{path}: segment id {identifier!r} is not understood; restore it or rebuild")
    if kind not in get_args(DenseKind) or kind == "auto":
        raise DamagedIndexError(f"{path}: dense kind {kind!r} is unknown; restore it or rebuild")
    if not isinstance(files, dict) or not files:
        raise DamagedIndexError(f"{path}: segment {identifier} lists no files; restore it or rebuild")
    return SegmentEntry(
        identifier,
        _count(record["documents"], path),
        _count(record["tokens"], path),
        kind,
        {name: _parse_file(name, entry, path) for name, entry in files.items()},
        _count(record["windows"], path) if "windows" in record else None,
    )


def _parse_file(name: str, record: object, path: Path) -> FileEntry:
    if not _FILE_NAME.fullmatch(name) or not isinstance(record, dict):
        raise DamagedIndexError(f"{path}: file entry {name!r} is not understood; restore it or rebuild")
    check_keys(record, set(FileEntry.__slots__), path)
    return FileEntry(_count(record["size_bytes"], path), _sha256(record["sha256"], path))


def _sha256(value: object, path: Path) -> str:
    if not isinstance(value, str) or not _SHA256.fullmatch(value):
        raise DamagedIndexError(f"{path}: {value!r} is no SHA-256; restore it or rebuild")
    return value


def _count(value: object, path: Path) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise DamagedIndexError(f"{path}: {value!r} is no count; restore it or rebuild")
    return value
