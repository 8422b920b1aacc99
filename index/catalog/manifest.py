"""The two JSON records of a collection: its settings, fixed at creation, and the manifest of a snapshot."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, get_args

from index.bm25.languages import DEFAULT_LANGUAGE, Bm25Language
from index.dense.index import DenseKind
from index.documents.fields import FieldType
from index.errors import DamagedIndexError, InvalidNameError
from index.files.storage import json_bytes, missing, read_json_object, write_atomically, write_json_atomically
from index.token_vectors.store import TokenCodec
from index.windows.settings import WindowSettings
from models.representations import LexicalKind

FORMAT_VERSION = 1
MAX_FIELDS = 100
_COLLECTION_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_FIELD_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")
_MANIFEST_NAME = re.compile(r"[0-9]{6,12}")
_SEGMENT_ID = re.compile(r"[a-z0-9-]{1,64}")
_FILE_NAME = re.compile(r"[a-z0-9][a-z0-9_.]{0,63}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
# Settings that `collection.json` has only where they are not these, so that collections without them keep
# their bytes and their checksum.
_UNWRITTEN: Mapping[str, object] = {
    "adapter": None,
    "lexical": "plain",
    "bm25": False,
    "bm25_language": DEFAULT_LANGUAGE,
    "window": None,
}
_MANIFEST_KEYS = {"format_version", "settings_sha256", "documents", "segments", "deletes", "ledger_position"}


def check_collection_name(name: str) -> str:
    """Returns the name. Raises InvalidNameError where it does not match the pattern."""
    if not isinstance(name, str) or not _COLLECTION_NAME.fullmatch(name):
        raise InvalidNameError(
            f"collection name {str(name)[:80]!r} does not match [a-z0-9][a-z0-9_-]{{0,63}}; choose another"
        )
    return name


@dataclass(frozen=True, slots=True)
class CollectionSettings:
    """What is fixed when a collection is created.

    encoder: the encoder's name, for people; adapter: that of its adapter, if any; fingerprint: of the
    encoder with its adapter, what must match to add or search. Dimensions count float values. lexical:
    whether a query's lexical weights are multiplied by the collection's idf (`index/sparse/idf.py`); bm25:
    whether documents have a BM25 side (`index/bm25/`), bm25_language: that of their words; window: how long
    documents are divided, without it they are cut at the encoder's limit.
    Raises InvalidNameError for a bad name, ValueError for another bad value.
    """

    name: str
    encoder: str
    fingerprint: str
    dense_dimension: int
    colbert_dimension: int
    vocabulary_size: int
    dense_kind: DenseKind = "auto"
    token_codec: TokenCodec = "int8"  # noqa: S105  # a codec of token vectors, no secret
    fields: Mapping[str, FieldType] = field(default_factory=dict)
    adapter: str | None = None
    lexical: LexicalKind = "plain"
    bm25: bool = False
    bm25_language: Bm25Language = DEFAULT_LANGUAGE
    window: WindowSettings | None = None

    def __post_init__(self) -> None:
        check_collection_name(self.name)
        for name, limit in (("dense_dimension", 1), ("colbert_dimension", 0), ("vocabulary_size", 1)):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < limit:
                raise ValueError(f"{name} is {value!r}; use an integer of at least {limit}")
        if self.dense_kind not in get_args(DenseKind):
            raise ValueError(f"dense_kind is {self.dense_kind!r}; use one of {get_args(DenseKind)}")
        if self.token_codec not in get_args(TokenCodec):
            raise ValueError(f"token_codec is {self.token_codec!r}; use one of {get_args(TokenCodec)}")
        if self.lexical not in get_args(LexicalKind):
            raise ValueError(f"lexical is {self.lexical!r}; use one of {get_args(LexicalKind)}")
        if not isinstance(self.bm25, bool):
            raise ValueError(f"bm25 is {self.bm25!r}; use true or false")
        if self.bm25_language not in get_args(Bm25Language):
            raise ValueError(f"bm25_language is {self.bm25_language!r}; use one of {get_args(Bm25Language)}")
        if not self.bm25 and self.bm25_language != DEFAULT_LANGUAGE:
            raise ValueError(f"bm25_language is {self.bm25_language!r}, but bm25 is false; make it true")
        if self.token_codec != "none" and self.colbert_dimension == 0:  # noqa: S105  # no secret
            raise ValueError(
                "colbert_dimension is 0; use token_codec none for an encoder without token vectors"
            )
        if self.adapter is not None and (
            not isinstance(self.adapter, str) or not _COLLECTION_NAME.fullmatch(self.adapter)
        ):
            raise ValueError(
                f"adapter is {self.adapter!r}; use a name that matches {_COLLECTION_NAME.pattern}"
            )
        if self.window is not None and not isinstance(self.window, WindowSettings):
            raise ValueError(f"window is {self.window!r}; use WindowSettings")
        self._check_fields()

    def _check_fields(self) -> None:
        if len(self.fields) > MAX_FIELDS:
            raise ValueError(f"{len(self.fields)} fields are declared; the limit is {MAX_FIELDS}")
        for name, kind in self.fields.items():
            if not isinstance(name, str) or not _FIELD_NAME.fullmatch(name):
                raise InvalidNameError(f"field name {name!r} does not match {_FIELD_NAME.pattern}; rename it")
            if kind not in get_args(FieldType):
                raise ValueError(f"field {name!r} has type {kind!r}; use one of {get_args(FieldType)}")

    @property
    def stores_token_vectors(self) -> bool:
        """Whether documents have a colbert side."""
        return self.token_codec != "none"  # noqa: S105  # no secret

    @property
    def content(self) -> bytes:
        """The bytes of `collection.json`."""
        values = {name: getattr(self, name) for name in self.__slots__}
        written = {name: value for name, value in values.items() if _is_written(name, value)}
        if self.window is not None:
            written["window"] = asdict(self.window)
        return json_bytes({"format_version": FORMAT_VERSION, **written, "fields": dict(self.fields)})

    @property
    def sha256(self) -> str:
        """The checksum of `content`, which manifests repeat."""
        return hashlib.sha256(self.content).hexdigest()

    def write(self, path: Path) -> None:
        """Writes `collection.json`."""
        write_atomically(path, [self.content])

    @staticmethod
    def read(path: Path) -> CollectionSettings:
        """Reads `collection.json`. Raises FileNotFoundError, or DamagedIndexError naming the file."""
        record = read_json_object(path)
        _check_version(record, path)
        values = {name: record.get(name, _UNWRITTEN.get(name)) for name in CollectionSettings.__slots__}
        expected = {name for name, value in values.items() if _is_written(name, value)}
        _check_keys(record, {"format_version", *expected}, path)
        del record["format_version"]
        for name in ("fields", "window"):
            if name in record and not isinstance(record[name], dict):
                raise DamagedIndexError(f"{path}: {name} is no object; restore the file")
        try:
            if "window" in record:
                record["window"] = WindowSettings(**record["window"])
            return CollectionSettings(**record)
        except (ValueError, TypeError, InvalidNameError) as error:
            raise DamagedIndexError(f"{path}: {error}") from error


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
        _check_version(record, path)
        _check_keys(record, _MANIFEST_KEYS, path)
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


def _is_written(setting: str, value: object) -> bool:
    return setting not in _UNWRITTEN or value != _UNWRITTEN[setting]


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
    _check_keys(record, expected if record.get("windows") is not None else expected - {"windows"}, path)
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
    _check_keys(record, set(FileEntry.__slots__), path)
    return FileEntry(_count(record["size_bytes"], path), _sha256(record["sha256"], path))


def _check_version(record: Mapping[str, Any], path: Path) -> None:
    version = record.get("format_version")
    if version != FORMAT_VERSION or isinstance(version, bool):
        raise DamagedIndexError(
            f"{path} has format version {version!r}; this release reads version {FORMAT_VERSION}: "
            "rebuild the collection, or use the release that wrote it"
        )


def _check_keys(record: Mapping[str, Any], expected: set[str], path: Path) -> None:
    if record.keys() != expected:
        missing, unknown = sorted(expected - record.keys()), sorted(record.keys() - expected)
        raise DamagedIndexError(f"{path}: keys missing: {missing}, unknown: {unknown}; restore it or rebuild")


def _sha256(value: object, path: Path) -> str:
    if not isinstance(value, str) or not _SHA256.fullmatch(value):
        raise DamagedIndexError(f"{path}: {value!r} is no SHA-256; restore it or rebuild")
    return value


def _count(value: object, path: Path) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise DamagedIndexError(f"{path}: {value!r} is no count; restore it or rebuild")
    return value
