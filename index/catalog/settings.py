"""The settings of a collection, `collection.json`, fixed at creation; the fields declared since then,
`fields.json`; and its lineage, `lineage.json`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import get_args

from tercet.index.bm25.languages import DEFAULT_LANGUAGE, Bm25Language
from tercet.index.catalog.lineage import Lineage
from tercet.index.catalog.names import ADAPTER_NAME, check_collection_name, check_field_name, check_title
from tercet.index.catalog.records import FORMAT_VERSION, Record
from tercet.index.codebook import Codebook, sign_codebook
from tercet.index.dense.kinds import DenseKind, Vectors, collection_kind
from tercet.index.documents.metadata import PARTITION, FieldType
from tercet.index.errors import DamagedIndexError, InvalidFieldError, InvalidNameError, PositionLostError
from tercet.index.files.content import json_bytes, missing, open_file
from tercet.index.files.directory import write_atomically, write_json_atomically
from tercet.index.token_codecs import CODED, LARGEST_POOLING, TokenCodec
from tercet.index.windows.settings import WindowSettings
from tercet.index.wording import shown
from tercet.models.representations import LexicalKind, Output, sides_of

CODEBOOK_FILE = "codebook.safetensors"
SETTINGS_FILE = "collection.json"
FIELDS_FILE = "fields.json"
MAX_FIELDS = 100
FEWER_FIELDS = "declare those that are filtered by; metadata need no field to be stored"
# How `index/bm25/` reads texts: raised where it gives a text other terms, since those of documents are
# stored.
BM25_READING = 2
_CHOICES = {
    "dense_kind": get_args(DenseKind),
    "token_codec": get_args(TokenCodec),
    "lexical": get_args(LexicalKind),
    "bm25_language": get_args(Bm25Language),
}
# Settings that `collection.json` has only where they are not these.
_UNWRITTEN: Mapping[str, object] = {
    "adapter": None,
    "lexical": "plain",
    "bm25": False,
    "bm25_language": DEFAULT_LANGUAGE,
    "window": None,
    "codebook": None,
    "dense_memory_bytes": None,
    "token_pooling": 1,
    "partitioned": False,
    "checkpoint": None,
    "title": None,
}


@dataclass(frozen=True, slots=True)
class CollectionSettings:
    """What is fixed when a collection is created.

    encoder: the encoder's name, for people; adapter: that of its adapter, if any; fingerprint: of the encoder
    with its adapter, what must match to add or search. Dimensions count float values; they are 0, as
    vocabulary_size is, where the encoder lacks that side, and so does the collection. lexical: whether a
    query's lexical weights are multiplied by the collection's idf (`index/sparse/idf.py`); bm25: whether
    documents have a BM25 side (`index/bm25/`), bm25_language: that of their words; window: how long documents
    are divided, without it they are cut at the encoder's limit; codebook: of the residual codecs and of sign,
    which has its own by default, in a file that `collection.json` names by its checksum; token_pooling: how
    many tokens share one token vector; partitioned: whether documents are placed by their partitions
    (`index/documents/partitions.py`), whose field is among `fields` then; checkpoint: where the encoder was,
    which only helps to find it, and title: what people call the collection: settings that differ in nothing
    else are equal; later_fields: those of `fields` that were declared after the creation, and so are not in
    `collection.json`; lineage: of which collection this is a copy, None before the first write of one of an
    older release; dense_memory_bytes: with the dense kind auto, what dense vectors and their graphs may take
    before lists are built instead, by default half of the memory of the machine that builds. Raises
    InvalidNameError for a bad name, ValueError for another bad value.
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
    codebook: Codebook | None = None
    dense_memory_bytes: int | None = None
    token_pooling: int = 1
    partitioned: bool = False
    checkpoint: str | None = field(default=None, compare=False)
    title: str | None = field(default=None, compare=False)
    later_fields: tuple[str, ...] = field(default=(), compare=False)
    lineage: Lineage | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        check_collection_name(self.name)
        counts = [
            ("dense_dimension", 0),
            ("colbert_dimension", 0),
            ("vocabulary_size", 0),
            ("token_pooling", 1),
        ]
        if self.dense_memory_bytes is not None:
            counts.append(("dense_memory_bytes", 1))
        for name, limit in counts:
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < limit:
                raise ValueError(f"{name} is {shown(value)}; use an integer of at least {limit}")
        for name, kinds in _CHOICES.items():
            if getattr(self, name) not in kinds:
                raise ValueError(f"{name} is {shown(getattr(self, name))}; use one of {', '.join(kinds)}")
        if self.token_codec != "none" and self.colbert_dimension == 0:  # noqa: S105  # no secret
            raise ValueError(
                f"token_codec is {shown(self.token_codec)}, but the encoder has no token vectors; use none"
            )
        if not self.sides:
            raise ValueError(
                "dense_dimension and vocabulary_size are 0, and there are no token vectors; a collection has "
                "one of these sides at least"
            )
        if self.dense_dimension == 0 and self.dense_kind not in ("auto", "flat"):
            raise ValueError(
                f"dense_kind is {shown(self.dense_kind)}, but the encoder has no dense side; use auto"
            )
        if self.vocabulary_size == 0 and self.lexical != "plain":
            raise ValueError(
                f"lexical is {shown(self.lexical)}, but the encoder has no lexical side; use plain"
            )
        if self.token_pooling > LARGEST_POOLING:
            raise ValueError(f"token_pooling is {self.token_pooling}; use 1 to {LARGEST_POOLING}")
        if self.token_codec == "sign" and self.codebook is None:  # noqa: S105  # no secret
            object.__setattr__(self, "codebook", sign_codebook(self.colbert_dimension))
        self._check_codebook()
        for name in ("bm25", "partitioned"):
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"{name} is {shown(getattr(self, name))}; use true or false")
        if not self.bm25 and self.bm25_language != DEFAULT_LANGUAGE:
            raise ValueError(f"bm25_language is {shown(self.bm25_language)}, but bm25 is false; make it true")
        if self.adapter is not None and (
            not isinstance(self.adapter, str) or not ADAPTER_NAME.fullmatch(self.adapter)
        ):
            raise ValueError(
                f"adapter is {shown(self.adapter)}; use a name that matches {ADAPTER_NAME.pattern}"
            )
        if self.checkpoint is not None and not (isinstance(self.checkpoint, str) and self.checkpoint):
            raise ValueError(f"checkpoint is {shown(self.checkpoint)}; use a folder or a hub id")
        if self.title is not None:
            check_title(self.title)
        if self.window is not None and not isinstance(self.window, WindowSettings):
            raise ValueError(f"window is {shown(self.window)}; use WindowSettings")
        if self.partitioned:
            if self.fields.get(PARTITION, "keyword") != "keyword":
                raise ValueError(f"partitioned is true, so field {PARTITION!r} is a keyword; leave it out")
            if PARTITION not in self.fields:
                object.__setattr__(self, "fields", {**self.fields, PARTITION: "keyword"})
        self._check_fields()

    def _check_codebook(self) -> None:
        if self.codebook is None and self.token_codec not in CODED:
            return
        if self.codebook is None or self.token_codec not in CODED:
            raise ValueError(
                f"token_codec {self.token_codec} goes {'without' if self.codebook else 'with'} a codebook: "
                "the residual codecs, for which a build from a source learns it, and sign alone have one"
            )
        if self.codebook.dimension != self.colbert_dimension:
            raise ValueError(
                f"the codebook is of {self.codebook.dimension} dimensions, colbert_dimension is "
                f"{self.colbert_dimension}; train it with vectors of this encoder"
            )

    def _check_fields(self) -> None:
        if len(self.fields) > MAX_FIELDS:
            raise ValueError(
                f"{len(self.fields)} fields are declared; the limit is {MAX_FIELDS}: {FEWER_FIELDS}"
            )
        for name, kind in self.fields.items():
            check_field_name(name)
            if kind not in get_args(FieldType):
                raise ValueError(
                    f"field {name!r} has type {shown(kind)}; use one of {', '.join(get_args(FieldType))}"
                )

    @property
    def own_fields(self) -> dict[str, FieldType]:
        """Those of `fields` that were asked for: without that of partitions."""
        return {name: kind for name, kind in self.fields.items() if not self.partitioned or name != PARTITION}

    @property
    def first_fields(self) -> list[str]:
        """The fields that the collection was created with, in the order of their places in segments."""
        return sorted(self.fields.keys() - set(self.later_fields))

    def with_fields(self, fields: Mapping[str, FieldType]) -> CollectionSettings:
        """With more fields. Raises InvalidFieldError for one that is declared with another type, or a type
        that there is not, or too many; InvalidNameError for a name that is none.
        """
        for name, kind in fields.items():
            if self.fields.get(name, kind) != kind:
                raise InvalidFieldError(
                    f"field {name!r} is declared as {self.fields[name]}, not {kind}; use another name, or "
                    "build the collection again",
                    name,
                )
        new = [name for name in fields if name not in self.fields]
        try:
            return replace(self, fields={**self.fields, **fields}, later_fields=(*self.later_fields, *new))
        except ValueError as error:
            raise InvalidFieldError(str(error)) from error

    def of_new_collection(self, name: str) -> CollectionSettings:
        """These of another collection, which is created with all fields that this one has by now."""
        return replace(self, name=name, later_fields=(), lineage=None)

    @property
    def stores_token_vectors(self) -> bool:
        """Whether documents have a colbert side."""
        return self.token_codec != "none"  # noqa: S105  # no secret

    @property
    def encoder_sides(self) -> tuple[Output, ...]:
        """The outputs that its encoder has."""
        return sides_of(self.dense_dimension, self.vocabulary_size, self.colbert_dimension)

    @property
    def sides(self) -> tuple[Output, ...]:
        """What documents are stored with."""
        return tuple(s for s in self.encoder_sides if s != "colbert" or self.stores_token_vectors)

    def collection_kind(self, present: Vectors, coming: int = 0) -> tuple[DenseKind, str]:
        """The dense kind of the collection, and why. present: what segments that stay have; coming: vectors
        of those that are being written.
        """
        vectors = sum(present.values()) + coming
        return collection_kind(
            self.dense_kind, vectors, self.dense_dimension, self.dense_memory_bytes, present
        )

    @property
    def content(self) -> bytes:
        """The bytes of `collection.json`."""
        values = {name: getattr(self, name) for name in _stored_settings()}
        written = {name: value for name, value in values.items() if _is_written(name, value)}
        if self.window is not None:
            written["window"] = asdict(self.window)
        if self.codebook is not None:
            written["codebook"] = self.codebook.sha256
        if self.bm25:
            written["bm25_reading"] = BM25_READING
        first = {name: kind for name, kind in self.fields.items() if name not in self.later_fields}
        return json_bytes({"format_version": FORMAT_VERSION, **written, "fields": first})

    @property
    def sha256(self) -> str:
        """The checksum of `content`, which manifests repeat."""
        return hashlib.sha256(self.content).hexdigest()

    def write(self, path: Path) -> None:
        """Writes `collection.json`, after the codebook beside it."""
        if self.codebook is not None:
            write_atomically(path.with_name(CODEBOOK_FILE), [self.codebook.content])
        write_atomically(path, [self.content])

    def write_later_fields(self, path: Path) -> None:
        """Writes `fields.json` beside `collection.json`, whose path this is."""
        later = {name: self.fields[name] for name in self.later_fields}
        write_json_atomically(
            path.with_name(FIELDS_FILE), {"format_version": FORMAT_VERSION, "fields": later}
        )

    def with_lineage(self, folder: Path) -> CollectionSettings:
        """With a lineage, which is written into the collection's folder where an older release wrote none."""
        if self.lineage is not None:
            return self
        lineage = Lineage.new()
        lineage.write(folder)
        return replace(self, lineage=lineage)

    @staticmethod
    def read(path: Path) -> CollectionSettings:
        """Reads `collection.json`, the codebook that it names, and `fields.json` and `lineage.json` where
        these are there.

        Raises FileNotFoundError where there is no `collection.json`, DamagedIndexError naming the file at
        fault.
        """
        record = Record.read(path)
        codebook = None
        if "codebook" in record.values:
            codebook = _read_codebook(path.with_name(CODEBOOK_FILE), record.values["codebook"])
        settings = replace(settings_of_record(record, codebook), lineage=Lineage.read(path.parent))
        try:
            later = Record.read(path.with_name(FIELDS_FILE))
        except FileNotFoundError:
            return settings
        return _with_later_fields(settings, later)


def require_kept(settings: CollectionSettings, position: int) -> None:
    """Raises PositionLostError where the write of a collection that was given a position was lost."""
    if settings.lineage is not None and settings.lineage.is_lost(position):
        raise PositionLostError(
            f"position {position} of collection {settings.name!r} is of a write that was lost before the "
            "collection was recovered; read again what you depend on, and write again what is missing"
        )


def _with_later_fields(settings: CollectionSettings, record: Record) -> CollectionSettings:
    record.require_version()
    record.require_keys(("format_version", "fields"))
    try:
        return settings.with_fields(record.part("fields").values)
    except (InvalidFieldError, InvalidNameError) as error:
        raise record.damaged(str(error)) from error


def settings_of_record(record: Record, codebook: Codebook | None = None) -> CollectionSettings:
    """The settings that `content` holds, with the codebook that it names. Raises DamagedIndexError naming
    the file that they come from.
    """
    record.require_version()
    given = record.values
    expected = [
        name for name in _stored_settings() if _is_written(name, given.get(name, _UNWRITTEN.get(name)))
    ]
    if given.get("bm25") is True and given.get("bm25_reading") != BM25_READING:
        reading = shown(given.get("bm25_reading"))
        raise DamagedIndexError(
            f"{record.path} has bm25_reading {reading}; this release reads words for BM25 in way "
            f"{BM25_READING}: use the release that wrote it, or delete the collection and build it again"
        )
    own = ["format_version", *(["bm25_reading"] if given.get("bm25") is True else [])]
    record.require_keys((*own, *expected))
    values = {name: value for name, value in given.items() if name not in own}
    values["fields"] = record.part("fields").values
    try:
        if codebook is not None:
            values["codebook"] = codebook
        if "window" in given:
            values["window"] = WindowSettings(**record.part("window").values)
        return CollectionSettings(**values)
    except (ValueError, TypeError, InvalidNameError) as error:
        raise record.damaged(str(error)) from error


def _stored_settings() -> list[str]:
    """Those that `collection.json` may have."""
    return [name for name in CollectionSettings.__slots__ if name not in ("later_fields", "lineage")]


def _is_written(setting: str, value: object) -> bool:
    return setting not in _UNWRITTEN or value != _UNWRITTEN[setting]


def _read_codebook(path: Path, sha256: object) -> Codebook:
    try:
        with open_file(path) as file:
            content = file.read()
    except FileNotFoundError as error:
        raise missing(path) from error
    if hashlib.sha256(content).hexdigest() != sha256:
        raise DamagedIndexError(f"{path} is not the one that the settings name; restore it")
    return Codebook.of_content(content, str(path))
