"""Columns of the declared metadata fields of one segment, on which filters work.

A field is `keyword` (a string), `integer` (64 bits), `number` (float64), `boolean` or `datetime`
(microseconds since 1970 in UTC); `tercet.index.documents.numbers` says which numbers they take. All but
booleans may
be lists of these. Null or an absent key means the document has no value. Files carry the field's place, not
its name: `field_000_values.npy` and `field_000_present.npy` for scalars, with `field_000_further.npy` and
`field_000_further_rows.npy` where documents have several; `field_000_strings.npy` (sorted distinct strings,
with their offsets), `field_000_codes.npy` and `field_000_rows.npy` for keywords. Places are those of the
sorted names, and after them those of fields that were declared later.
`tercet.index.documents.fields_writer` writes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from unicodedata import normalize

import numpy as np
import numpy.typing as npt

from tercet.index.documents.datetimes import microseconds_of
from tercet.index.documents.intervals import counted
from tercet.index.documents.metadata import FieldType, value_at
from tercet.index.documents.numbers import exact_integer, exact_number
from tercet.index.errors import DamagedIndexError, InvalidDocumentError, damaged
from tercet.index.files.arrays import ArraySource, open_rows
from tercet.index.files.content import text_of
from tercet.index.files.packed_bytes import PackedBytes
from tercet.index.wording import shown
from tercet.models.representations import Bool, Int32, Int64

ScalarType = Literal["integer", "number", "boolean", "datetime"]
MAX_KEYWORD_BYTES = 1024
SCALAR_DTYPES: dict[ScalarType, npt.DTypeLike] = {
    "integer": np.int64,
    "number": np.float64,
    "boolean": np.bool_,
    "datetime": np.int64,
}


@dataclass(frozen=True, slots=True)
class FurtherValues:
    """The values of documents that have several, but for the first of each: values int64[K] or float64[K];
    rows: int64[K], the document of each, ascending.
    """

    values: npt.NDArray[Any]
    rows: Int64

    def take(self, rows: Int64) -> FurtherValues | None:
        """The further values of these documents; None where there are none."""
        owners, indices = _of_rows(self.rows, rows)
        return FurtherValues(self.values[indices], owners) if len(owners) else None


@dataclass(frozen=True, slots=True)
class ScalarColumn:
    """values: int64[N], float64[N] or bool[N]; present: bool[N]; further: None where none has several."""

    values: npt.NDArray[Any]
    present: Bool
    further: FurtherValues | None = None

    def take(self, rows: Int64) -> ScalarColumn:
        """The values of these documents."""
        further = None if self.further is None else self.further.take(rows)
        return ScalarColumn(self.values[rows], self.present[rows], further)


@dataclass(frozen=True, slots=True)
class KeywordColumn:
    """strings: the distinct strings in ascending order; codes: int32[P], indices in `strings`;
    rows: int64[P], the document of each code, ascending; name: what messages call the strings.
    """

    strings: PackedBytes
    codes: Int32
    rows: Int64
    name: str = "strings in memory"

    def take(self, rows: Int64) -> KeywordColumn:
        """The values of these documents, as indices in the same strings."""
        owners, indices = _of_rows(self.rows, rows)
        return KeywordColumn(self.strings, self.codes[indices], owners, self.name)

    def text(self, string: bytes) -> str:
        """One of the strings. Raises DamagedIndexError where it is not UTF-8."""
        return text_of(string, self.name)


def _of_rows(owners: Int64, rows: Int64) -> tuple[Int64, Int64]:
    """The items of some rows, one row after the other: which of these owns each, and where it is, int64[M]
    both. owners: int64[P], the row of each item, ascending.
    """
    starts, ends = np.searchsorted(owners, rows), np.searchsorted(owners, rows, "right")
    return np.repeat(np.arange(len(rows)), ends - starts), counted(starts, ends)


Column = ScalarColumn | KeywordColumn


def field_values(name: str, kind: FieldType, value: object, *, rounded: bool = False) -> list[Any]:
    """The values one document has in a field: none, one, or several; of keywords as UTF-8 bytes.

    rounded: whether a number may be an integer that it does not hold exactly, as in documents that were
    written before this was refused. Raises InvalidDocumentError where a value has another type than the
    field, or is none that it holds exactly.
    """
    if value is None:
        return []
    members = value if isinstance(value, list | tuple) and kind != "boolean" else [value]
    if kind == "keyword":
        return [_keyword(name, member) for member in members]
    return [_scalar(name, kind, member, rounded=rounded) for member in members]


def _scalar(name: str, kind: ScalarType, value: object, *, rounded: bool) -> int | float:
    if kind == "boolean" and isinstance(value, bool):
        return value
    if kind in ("integer", "number") and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value) if rounded and kind == "number" else _exact(name, kind, value)
    if kind == "datetime" and isinstance(value, str):
        return _moment(name, value)
    raise InvalidDocumentError(
        f"field {name!r} is declared as {kind}, but the value is {shown(value)}; change one"
    )


def _keyword(name: str, member: object) -> bytes:
    if not isinstance(member, str):
        raise InvalidDocumentError(
            f"field {name!r} is declared as keyword, but holds {shown(member)}; use strings"
        )
    try:
        encoded = composed(member).encode()
    except UnicodeEncodeError as error:
        raise InvalidDocumentError(
            f"field {name!r}: {shown(member)} is not UTF-8 text; remove surrogates"
        ) from error
    if len(encoded) > MAX_KEYWORD_BYTES:
        raise InvalidDocumentError(
            f"field {name!r}: a keyword has {len(encoded)} bytes; the limit is {MAX_KEYWORD_BYTES}: shorten "
            "it, or keep it in metadata under a name that is not declared"
        )
    return encoded


def composed(text: str) -> str:
    """A text in Unicode's form NFC, in which keywords are compared: several forms of one text look alike."""
    return normalize("NFC", text)


def _exact(name: str, kind: FieldType, value: int | float) -> int | float:
    try:
        return exact_integer(value) if kind == "integer" else exact_number(value)
    except ValueError as error:
        raise InvalidDocumentError(f"field {name!r} is declared as {kind}, but {error}") from error


def _moment(name: str, value: str) -> int:
    try:
        return microseconds_of(value)
    except ValueError as error:
        raise InvalidDocumentError(f"field {name!r}: {shown(value)} is no moment in time: {error}") from error


def column_of(kind: FieldType, values: Sequence[list[Any]]) -> Column:
    """The column of a field from the `field_values` of each document."""
    if kind == "keyword":
        members = [member for document_values in values for member in document_values]
        strings = sorted(set(members))
        code_of = {string: code for code, string in enumerate(strings)}
        codes = np.fromiter(map(code_of.__getitem__, members), np.int32, len(members))
        rows = np.repeat(np.arange(len(values)), [len(document_values) for document_values in values])
        return KeywordColumn(PackedBytes.of(strings), codes, rows.astype(np.int64))
    dtype = np.dtype(SCALAR_DTYPES[kind])
    further = [(member, row) for row, document_values in enumerate(values) for member in document_values[1:]]
    return ScalarColumn(
        np.array([document_values[0] if document_values else 0 for document_values in values], dtype),
        np.array([bool(document_values) for document_values in values], np.bool_),
        FurtherValues(
            np.array([member for member, _ in further], dtype),
            np.array([row for _, row in further], np.int64),
        )
        if further
        else None,
    )


def columns_of(
    fields: Mapping[str, FieldType],
    ids: Sequence[str],
    metadata: Sequence[Mapping[str, Any]],
    *,
    rounded: bool = False,
) -> dict[str, Column]:
    """The columns of all fields from the metadata of each document. rounded: see `field_values`.

    Raises InvalidDocumentError, naming the document by its id, for a value of another type than its field.
    """
    columns = {}
    for name, kind in fields.items():
        values = []
        for id, document_metadata in zip(ids, metadata, strict=True):
            try:
                values.append(field_values(name, kind, value_at(document_metadata, name), rounded=rounded))
            except InvalidDocumentError as error:
                raise InvalidDocumentError(f"document {id!r:.80}: {error}", f"metadata.{name}") from error
        columns[name] = column_of(kind, values)
    return columns


def open_columns(
    arrays: ArraySource, fields: Mapping[str, FieldType], stems: Mapping[str, str], documents: int
) -> dict[str, Column]:
    """Opens the columns of a segment, whose stems these are. Raises DamagedIndexError naming the file."""
    columns: dict[str, Column] = {}
    for name, kind in fields.items():
        stem = stems.get(name)
        if stem is None:
            raise DamagedIndexError(
                f"{arrays.path('documents')}: the segment has no columns of field {name!r}; restore the "
                "manifest, or rebuild the collection"
            )
        if kind == "keyword":
            rows = open_rows(arrays, f"{stem}_rows", documents)
            strings = PackedBytes.open(arrays, f"{stem}_strings")
            codes = arrays.open(f"{stem}_codes", np.int32, rows=len(rows))
            if len(codes) and not 0 <= codes.min() <= codes.max() < len(strings):
                raise damaged(
                    arrays.path(f"{stem}_codes"), f"names a string outside the {len(strings)} of its field"
                )
            columns[name] = KeywordColumn(strings, codes, rows, str(arrays.path(f"{stem}_strings")))
        else:
            columns[name] = ScalarColumn(
                arrays.open(f"{stem}_values", SCALAR_DTYPES[kind], rows=documents),
                arrays.open(f"{stem}_present", np.bool_, rows=documents),
                _open_further(arrays, stem, SCALAR_DTYPES[kind], documents),
            )
    return columns


def _open_further(
    arrays: ArraySource, stem: str, dtype: npt.DTypeLike, documents: int
) -> FurtherValues | None:
    if not arrays.has(f"{stem}_further"):
        return None
    rows = open_rows(arrays, f"{stem}_further_rows", documents)
    return FurtherValues(arrays.open(f"{stem}_further", dtype, rows=len(rows)), rows)


def field_stems(names: Iterable[str | None], first: int = 0) -> dict[str, str]:
    """How the names of the arrays of each field begin: those of a segment's fields, from this number on.

    None takes a number that is nobody's.
    """
    return {name: f"field_{number:03d}" for number, name in enumerate(names, first) if name is not None}
