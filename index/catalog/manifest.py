"""The manifest of a snapshot: its segments, with size and checksum of every file."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, get_args

from index.catalog.records import check_keys, check_version
from index.dense.kinds import DenseKind, Vectors
from index.errors import DamagedIndexError
from index.files.content import missing, read_json_object
from index.files.directory import write_json_atomically

_MANIFEST_NAME = re.compile(r"[0-9]{6,12}")
_SEGMENT_ID = re.compile(r"[a-z0-9-]{1,64}")
_FILE_NAME = re.compile(r"[a-z0-9][a-z0-9_.]{0,63}")
_DELETES_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,100}\.npy")
_SHA256 = re.compile(r"[0-9a-f]{64}")
FORMAT_VERSION = 2
_KEYS = {"format_version", "settings_sha256", "documents", "segments", "ledger_position"}
_KEYS_OF_VERSION_1 = {*_KEYS, "deletes"}


@dataclass(frozen=True, slots=True)
class FileEntry:
    """Size and SHA-256 of one file."""

    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class DeletesEntry:
    """A file of delete marks: its name in `deletes/`, how many rows it marks, size and SHA-256."""

    file: str
    documents: int
    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class SegmentEntry:
    """One immutable segment: its folder's name, counts, resolved dense kind, and every file.

    documents: those that it was written with; windows: of all these, None in a collection without them;
    deletes: which of them are deleted, None where none is; written_at: the ledger's position that a build's
    documents count as written at, 0 where the collection had no writes before; fields: those that it has
    columns of, in the order of their places, None for those that the collection was created with; a place
    that is None has columns of what was never declared.
    """

    id: str
    documents: int
    tokens: int
    dense_kind: DenseKind
    files: Mapping[str, FileEntry]
    windows: int | None = None
    deletes: DeletesEntry | None = None
    written_at: int = 0
    fields: tuple[str | None, ...] | None = None

    @property
    def documents_kept(self) -> int:
        """Those that are not deleted."""
        return self.documents - (0 if self.deletes is None else self.deletes.documents)

    @property
    def encodings(self) -> int:
        """Its encoded texts: windows, or documents in a collection without them."""
        return self.documents if self.windows is None else self.windows


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a snapshot consists of. `name` is the file's stem, such as "000007"; `settings_sha256` is the
    checksum of `collection.json`; `ledger_position`: the last operation of the ledger that the segments
    hold, 0 where there was none.

    Format version 1 had no deletes and no ledger.
    """

    name: str
    settings_sha256: str
    segments: tuple[SegmentEntry, ...]
    ledger_position: int = 0

    @property
    def documents(self) -> int:
        """Documents of all segments, without deleted ones."""
        return sum(segment.documents_kept for segment in self.segments)

    @property
    def tokens(self) -> int:
        """Tokens of all segments."""
        return sum(segment.tokens for segment in self.segments)

    def is_marked(self, mark: str) -> bool:
        """Whether the writer that was given this mark wrote it."""
        return any(segment.id.endswith(f"-{mark}") for segment in self.segments)

    @property
    def record(self) -> dict[str, Any]:
        """What the file of a manifest holds."""
        return {
            "format_version": FORMAT_VERSION,
            "settings_sha256": self.settings_sha256,
            "documents": self.documents,
            "segments": [segment_record(segment) for segment in self.segments],
            "ledger_position": self.ledger_position,
        }

    def write(self, path: Path) -> None:
        """Writes the manifest."""
        write_json_atomically(path, self.record)

    @staticmethod
    def read(path: Path) -> Manifest:
        """Reads a manifest. Raises DamagedIndexError, naming the file, where anything is unexpected."""
        try:
            record = read_json_object(path)
        except FileNotFoundError as error:
            raise missing(path) from error
        return Manifest.of_record(record, path)

    @staticmethod
    def of_record(record: dict[str, Any], path: Path) -> Manifest:
        """The manifest of `record`, which has the path's stem as its name. Raises DamagedIndexError, naming
        the path, where anything is unexpected.
        """
        if check_version(record, FORMAT_VERSION, path) == 1:
            record = _as_version_2(record, path)
        check_keys(record, _KEYS, path)
        if not isinstance(record["segments"], list):
            raise DamagedIndexError(f"{path}: segments is no list; restore it or rebuild")
        manifest = Manifest(
            path.stem,
            _sha256(record["settings_sha256"], path),
            tuple(segment_of_record(segment, path) for segment in record["segments"]),
            _count(record["ledger_position"], path),
        )
        if record["documents"] != manifest.documents:
            raise DamagedIndexError(
                f"{path} counts {record['documents']!r} documents, but its segments have {manifest.documents}"
            )
        if len({segment.id for segment in manifest.segments}) != len(manifest.segments):
            raise DamagedIndexError(f"{path} names a segment twice; restore it or rebuild")
        return manifest


def _as_version_2(record: dict[str, Any], path: Path) -> dict[str, Any]:
    """A manifest of format version 1, with nothing deleted and nothing in a ledger."""
    check_keys(record, _KEYS_OF_VERSION_1, path)
    if record["deletes"] is not None or record["ledger_position"] is not None:
        raise DamagedIndexError(f"{path}: deletes and ledger_position must be null in version 1")
    found = {name: value for name, value in record.items() if name != "deletes"}
    return {**found, "ledger_position": 0}


def dense_vectors(segments: Iterable[SegmentEntry]) -> Vectors:
    """How many dense vectors segments have, by kind."""
    counts: Counter[DenseKind] = Counter()
    for segment in segments:
        counts[segment.dense_kind] += segment.encodings
    return counts


def segment_id(manifest: str, number: int, mark: str) -> str:
    """The name of a segment's folder: the manifest that it is written for, its place, its writer's mark."""
    return f"{manifest}-{number:04d}-{mark}"


def is_manifest_name(name: str) -> bool:
    """Whether this is the name of a manifest: 6 to 12 digits."""
    return _MANIFEST_NAME.fullmatch(name) is not None


def segment_record(segment: SegmentEntry) -> dict[str, Any]:
    """A segment as a manifest has it, in JSON."""
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
        **({} if segment.deletes is None else {"deletes": asdict(segment.deletes)}),
        **({"written_at": segment.written_at} if segment.written_at else {}),
        **({} if segment.fields is None else {"fields": list(segment.fields)}),
    }


def segment_of_record(record: object, path: Path) -> SegmentEntry:
    """The segment of such a record. Raises DamagedIndexError, naming the file that it comes from."""
    if not isinstance(record, dict):
        raise DamagedIndexError(f"{path}: a segment is no object; restore it or rebuild")
    optional = {name for name in ("windows", "deletes", "written_at", "fields") if record.get(name) is None}
    check_keys(record, set(SegmentEntry.__slots__) - optional, path)
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
        _parse_deletes(record, path) if "deletes" in record else None,
        _count(record["written_at"], path) if "written_at" in record else 0,
        _parse_fields(record["fields"], path) if "fields" in record else None,
    )


def _parse_deletes(segment: Mapping[str, Any], path: Path) -> DeletesEntry:
    record = segment["deletes"]
    if not isinstance(record, dict):
        raise DamagedIndexError(f"{path}: the deletes of a segment are no object; restore it or rebuild")
    check_keys(record, set(DeletesEntry.__slots__), path)
    file, documents = record["file"], _count(record["documents"], path)
    if not isinstance(file, str) or not _DELETES_NAME.fullmatch(file):
        raise DamagedIndexError(f"{path}: file name {file!r} is not understood; restore it or rebuild")
    if not 1 <= documents <= segment["documents"]:
        raise DamagedIndexError(
            f"{path}: {documents} of {segment['documents']!r} documents of a segment are deleted; restore it "
            "or rebuild"
        )
    return DeletesEntry(file, documents, _count(record["size_bytes"], path), _sha256(record["sha256"], path))


def _parse_fields(record: object, path: Path) -> tuple[str | None, ...]:
    if not isinstance(record, list) or not all(name is None or isinstance(name, str) for name in record):
        raise DamagedIndexError(f"{path}: the fields of a segment are no names; restore it or rebuild")
    names = [name for name in record if name is not None]
    if len(set(names)) != len(names):
        raise DamagedIndexError(f"{path}: a segment names a field twice; restore it or rebuild")
    return tuple(record)


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
