"""Columns of the declared metadata fields of one segment, on which filters work.

A field is `keyword` (one string or a list of strings), `integer` (64 bits), `number` or `boolean`; null
or an absent key means the document has no value. Files carry the field's place in the sorted names, not
its name: `field_000_values.npy` and `field_000_present.npy` for scalars; `field_000_strings.npy` (sorted
distinct strings, with their offsets), `field_000_codes.npy` and `field_000_rows.npy` for keywords.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from index.errors import InvalidDocumentError
from index.packed_bytes import PackedBytes, PackedBytesWriter
from index.storage import open_array, open_rows, write_array
from models.representations import Bool, Int32, Int64

FieldType = Literal["keyword", "integer", "number", "boolean"]
ScalarType = Literal["integer", "number", "boolean"]
MAX_KEYWORD_BYTES = 1024
INT64_LIMIT = 2**63
_SCALAR_DTYPES: dict[ScalarType, npt.DTypeLike] = {
    "integer": np.int64,
    "number": np.float64,
    "boolean": np.bool_,
}


@dataclass(frozen=True, slots=True)
class ScalarColumn:
    """values: int64[N], float64[N] or bool[N]; present: bool[N]."""

    values: npt.NDArray[Any]
    present: Bool


@dataclass(frozen=True, slots=True)
class KeywordColumn:
    """strings: the distinct strings in ascending order; codes: int32[P], places in `strings`;
    rows: int64[P], the document of each code, ascending.
    """

    strings: PackedBytes
    codes: Int32
    rows: Int64


Column = ScalarColumn | KeywordColumn


def field_values(name: str, kind: FieldType, value: object) -> list[Any]:
    """The values one document has in a field: none, one, or for keywords several (as UTF-8 bytes).

    Raises InvalidDocumentError where a value has another type than the field.
    """
    if value is None:
        return []
    if kind == "keyword":
        members = value if isinstance(value, list | tuple) else [value]
        return [_keyword(name, member) for member in members]
    if kind == "boolean" and isinstance(value, bool):
        return [value]
    if kind == "integer" and isinstance(value, int) and not isinstance(value, bool):
        if not -INT64_LIMIT <= value < INT64_LIMIT:
            raise InvalidDocumentError(
                f"field {name!r}: {value} does not fit in 64 bits; declare it as number"
            )
        return [value]
    if kind == "number" and isinstance(value, int | float) and not isinstance(value, bool):
        return [_finite(name, value)]
    raise InvalidDocumentError(
        f"field {name!r} is declared as {kind}, but the value is {value!r}; change one"
    )


def _keyword(name: str, member: object) -> bytes:
    if not isinstance(member, str):
        raise InvalidDocumentError(
            f"field {name!r} is declared as keyword, but holds {member!r}; use strings"
        )
    try:
        encoded = member.encode()
    except UnicodeEncodeError as error:
        raise InvalidDocumentError(
            f"field {name!r}: {member!r} is not UTF-8 text; remove surrogates"
        ) from error
    if len(encoded) > MAX_KEYWORD_BYTES:
        raise InvalidDocumentError(
            f"field {name!r}: a keyword has {len(encoded)} bytes; the limit is {MAX_KEYWORD_BYTES}"
        )
    return encoded


def _finite(name: str, value: int | float) -> float:
    try:
        number = float(value)
    except OverflowError as error:
        raise InvalidDocumentError(f"field {name!r}: {value} is too large for a number") from error
    if not math.isfinite(number):
        raise InvalidDocumentError(f"field {name!r}: {value} is not finite; leave the field out instead")
    return number


class FieldsWriter:
    """Gathers the declared fields of one segment; a few bytes a document, so they wait in memory."""

    def __init__(self, folder: Path, fields: Mapping[str, FieldType]) -> None:
        self._folder = folder
        self._fields = sorted(fields.items())
        self._values: dict[str, list[Any]] = {name: [] for name in fields}
        self._rows: dict[str, list[int]] = {name: [] for name in fields}
        self._documents = 0

    def append(self, values: Sequence[Mapping[str, list[Any]]]) -> None:
        """Adds the checked field values of some documents."""
        for document in values:
            for name, found in document.items():
                self._values[name].extend(found)
                self._rows[name].extend([self._documents] * len(found))
            self._documents += 1

    def finish(self) -> None:
        """Writes every field's files."""
        for place, (name, kind) in enumerate(self._fields):
            rows = np.array(self._rows[name], np.int64)
            if kind == "keyword":
                self._write_keywords(_stem(place), self._values[name], rows)
            else:
                self._write_scalars(_stem(place), kind, self._values[name], rows)

    def _write_scalars(self, stem: str, kind: ScalarType, found: list[Any], rows: Int64) -> None:
        values = np.zeros(self._documents, _SCALAR_DTYPES[kind])
        present = np.zeros(self._documents, np.bool_)
        values[rows] = np.array(found, values.dtype)
        present[rows] = True
        write_array(self._folder / f"{stem}_values.npy", values)
        write_array(self._folder / f"{stem}_present.npy", present)

    def _write_keywords(self, stem: str, found: list[bytes], rows: Int64) -> None:
        strings = sorted(set(found))
        places = {string: place for place, string in enumerate(strings)}
        writer = PackedBytesWriter(self._folder, f"{stem}_strings")
        try:
            writer.append(strings)
            writer.finish()
        finally:
            writer.close()
        write_array(self._folder / f"{stem}_codes.npy", np.array([places[s] for s in found], np.int32))
        write_array(self._folder / f"{stem}_rows.npy", rows)


def open_columns(folder: Path, fields: Mapping[str, FieldType], documents: int) -> dict[str, Column]:
    """Maps the columns of a segment. Raises DamagedIndexError naming the file."""
    columns: dict[str, Column] = {}
    for place, (name, kind) in enumerate(sorted(fields.items())):
        stem = _stem(place)
        if kind == "keyword":
            rows = open_rows(folder / f"{stem}_rows.npy", documents)
            codes = open_array(folder / f"{stem}_codes.npy", np.int32, rows=len(rows))
            columns[name] = KeywordColumn(PackedBytes.open(folder, f"{stem}_strings"), codes, rows)
        else:
            columns[name] = ScalarColumn(
                open_array(folder / f"{stem}_values.npy", _SCALAR_DTYPES[kind], rows=documents),
                open_array(folder / f"{stem}_present.npy", np.bool_, rows=documents),
            )
    return columns


def _stem(place: int) -> str:
    return f"field_{place:03d}"
