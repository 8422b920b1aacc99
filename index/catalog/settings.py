"""The settings of a collection, `collection.json`, fixed at creation."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, get_args

from index.bm25.languages import DEFAULT_LANGUAGE, Bm25Language
from index.catalog.records import check_keys, check_version
from index.dense.index import DenseKind
from index.documents.fields import FieldType
from index.errors import DamagedIndexError, InvalidNameError
from index.files.storage import json_bytes, read_json_object, write_atomically
from index.token_vectors.store import TokenCodec
from index.windows.settings import WindowSettings
from models.representations import LexicalKind

FORMAT_VERSION = 1
MAX_FIELDS = 100
_COLLECTION_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_FIELD_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")
# Settings that `collection.json` has only where they are not these, so that collections without them keep
# their bytes and their checksum.
_UNWRITTEN: Mapping[str, object] = {
    "adapter": None,
    "lexical": "plain",
    "bm25": False,
    "bm25_language": DEFAULT_LANGUAGE,
    "window": None,
}


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
        return CollectionSettings.of_record(read_json_object(path), path)

    @staticmethod
    def of_record(record: dict[str, Any], path: Path) -> CollectionSettings:
        """The settings that `content` holds. Raises DamagedIndexError naming the file that they come from."""
        check_version(record, FORMAT_VERSION, path)
        values = {name: record.get(name, _UNWRITTEN.get(name)) for name in CollectionSettings.__slots__}
        expected = {name for name, value in values.items() if _is_written(name, value)}
        check_keys(record, {"format_version", *expected}, path)
        record = {name: value for name, value in record.items() if name != "format_version"}
        for name in ("fields", "window"):
            if name in record and not isinstance(record[name], dict):
                raise DamagedIndexError(f"{path}: {name} is no object; restore the file")
        try:
            if "window" in record:
                record["window"] = WindowSettings(**record["window"])
            return CollectionSettings(**record)
        except (ValueError, TypeError, InvalidNameError) as error:
            raise DamagedIndexError(f"{path}: {error}") from error


def _is_written(setting: str, value: object) -> bool:
    return setting not in _UNWRITTEN or value != _UNWRITTEN[setting]
