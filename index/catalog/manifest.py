"""The manifest of a snapshot: its segments, with size and checksum of every file."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, get_args

from tercet.index.catalog.records import FORMAT_VERSION, Record
from tercet.index.dense.kinds import DenseKind, Vectors
from tercet.index.files.content import missing
from tercet.index.files.directory import write_json_atomically
from tercet.index.wording import shown

MANIFEST_NAME = re.compile(r"[0-9]{6,12}")
_SEGMENT_ID = re.compile(r"[a-z0-9-]{1,64}")
_FILE_NAME = re.compile(r"[a-z0-9][a-z0-9_.]{0,63}")
_DELETES_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,100}\.npy")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_KEYS = {"format_version", "settings_sha256", "documents", "segments", "ledger_position"}
_OPTIONAL = {"windows", "deletes", "written_at", "fields"}  # of a segment


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
        write_json_atomically(path, self.record)

    @staticmethod
    def read(path: Path) -> Manifest:
        """Reads a manifest. Raises DamagedIndexError, naming the file, where anything is unexpected."""
        try:
            record = Record.read(path)
        except FileNotFoundError as error:
            raise missing(path) from error
        return Manifest.of_record(record)

    @staticmethod
    def of_record(record: Record) -> Manifest:
        """The manifest of a record, which has the stem of its path as its name. Raises DamagedIndexError,
        naming the path, where anything is unexpected.
        """
        record.require_version()
        record.require_keys(_KEYS)
        manifest = Manifest(
            record.path.stem,
            record.text("settings_sha256", _SHA256),
            tuple(map(segment_of_record, record.parts("segments"))),
            record.count("ledger_position"),
        )
        if record.values["documents"] != manifest.documents:
            raise record.damaged(
                f"documents is {shown(record.values['documents'])}, but its segments have "
                f"{manifest.documents}"
            )
        if len({segment.id for segment in manifest.segments}) != len(manifest.segments):
            raise record.damaged("it names a segment twice")
        return manifest


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
    return MANIFEST_NAME.fullmatch(name) is not None


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


def segment_of_record(record: Record) -> SegmentEntry:
    """The segment of such a record. Raises DamagedIndexError, naming the file that it comes from."""
    given = {name for name in _OPTIONAL if record.values.get(name) is not None}
    record.require_keys({*SegmentEntry.__slots__} - (_OPTIONAL - given))
    files = record.part("files")
    if not files.values:
        raise record.damaged("a segment lists no files")
    documents = record.count("documents")
    return SegmentEntry(
        record.text("id", _SEGMENT_ID),
        documents,
        record.count("tokens"),
        record.one_of("dense_kind", [kind for kind in get_args(DenseKind) if kind != "auto"]),
        {name: _parse_file(name, files) for name in files.values},
        record.count("windows") if "windows" in given else None,
        _parse_deletes(record.part("deletes"), documents) if "deletes" in given else None,
        record.count("written_at") if "written_at" in given else 0,
        _parse_fields(record) if "fields" in given else None,
    )


def _parse_deletes(record: Record, documents: int) -> DeletesEntry:
    record.require_keys(DeletesEntry.__slots__)
    return DeletesEntry(
        record.text("file", _DELETES_NAME),
        record.count("documents", 1, documents),
        record.count("size_bytes"),
        record.text("sha256", _SHA256),
    )


def _parse_fields(segment: Record) -> tuple[str | None, ...]:
    fields = segment.values["fields"]
    if not isinstance(fields, list) or not all(name is None or isinstance(name, str) for name in fields):
        raise segment.damaged("the fields of a segment are no names")
    names = [name for name in fields if name is not None]
    if len(set(names)) != len(names):
        raise segment.damaged("a segment names a field twice")
    return tuple(fields)


def _parse_file(name: str, files: Record) -> FileEntry:
    if not _FILE_NAME.fullmatch(name):
        raise files.damaged(f"file name {name!r} is not understood")
    record = files.part(name)
    record.require_keys(FileEntry.__slots__)
    return FileEntry(record.count("size_bytes"), record.text("sha256", _SHA256))
