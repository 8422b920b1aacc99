"""Declared fields: which values they take, and how columns are opened."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tercet.index.documents.fields import field_stems, field_values, open_columns
from tercet.index.documents.fields_writer import FieldsWriter
from tercet.index.documents.metadata import FieldType
from tercet.index.errors import DamagedIndexError, InvalidDocumentError
from tercet.index.files.array_folder import ArrayFolder


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("keyword", "red", [b"red"]),
        ("keyword", ["b", "a", "a"], [b"b", b"a", b"a"]),
        ("keyword", [], []),
        ("keyword", None, []),
        ("keyword", ["cafe\u0301", "\u1100\u1161"], ["caf\xe9".encode(), "\uac00".encode()]),
        ("integer", -(2**63), [-(2**63)]),
        ("integer", 0, [0]),
        ("integer", 2**63 - 1, [2**63 - 1]),
        ("integer", 2020.0, [2020]),  # JSON has one kind of number
        ("integer", -(2.0**53), [-(2**53)]),
        ("number", 3, [3.0]),
        ("number", 2**53, [2.0**53]),
        ("number", 1e300, [1e300]),
        ("number", 2.5, [2.5]),
        ("boolean", False, [False]),
        ("datetime", "1970-01-01T09:00:01+09:00", [1_000_000]),
        ("datetime", "1970-01-02", [86_400_000_000]),
        ("datetime", "1970-01-01 00:00:01+00", [1_000_000]),
        ("datetime", None, []),
        ("integer", [3, -1, 3.0], [3, -1, 3]),
        ("integer", [], []),
        ("number", [3, 0.5], [3.0, 0.5]),
        ("datetime", ["1970-01-02", "1970-01-01 00:00:01"], [86_400_000_000, 1_000_000]),
        ("boolean", None, []),
    ],
)
def test_values_of_the_declared_type(kind: FieldType, value: Any, expected: list[Any]) -> None:
    found = field_values("f", kind, value)
    assert found == expected
    assert [type(member) for member in found] == [type(member) for member in expected]


@pytest.mark.parametrize(
    ("kind", "value", "problem"),
    [
        ("keyword", 3, "declared as keyword, but holds 3"),
        ("keyword", ["a", None], "holds null"),
        ("keyword", "x" * 1025, "1025 bytes; the limit is 1024: shorten it"),
        ("keyword", "\ud800", "not UTF-8"),
        (
            "integer",
            1.5,
            "declared as integer, but 1.5 is no whole number; use one, or a field of type number",
        ),
        (
            "integer",
            2.0**60,
            r"1.152921504606847e\+18 is a float beyond ±9007199254740992, where floats are rou",
        ),
        ("integer", float("inf"), "inf is not finite"),
        ("integer", True, "declared as integer"),
        ("integer", "1", "declared as integer"),
        ("integer", 2**63, "does not fit in 64 bits"),
        ("number", "1", "declared as number"),
        ("number", True, "declared as number"),
        ("number", float("nan"), "not finite"),
        ("number", 1715938200123456789, "1715938200123456789 is beyond ±9007199254740992.*of type integer"),
        ("number", -(2**53) - 1, "beyond ±9007199254740992"),
        ("number", 10**400, "of 1329 bits is beyond"),
        ("boolean", 1, "declared as boolean"),
        ("boolean", [True], "declared as boolean"),
        ("datetime", 1715938200, "declared as datetime, but the value is 1715938200"),
        (
            "datetime",
            "17.5.2024",
            '"17.5.2024" is no moment in time: use a form such as 2024-05-17T09:30:00Z',
        ),
        ("datetime", ["2024-05-17", 5], "declared as datetime, but the value is 5"),
        ("integer", [1, None], "declared as integer, but the value is null"),
        ("integer", [[1]], r"declared as integer, but the value is \[1\]"),
        ("number", [1, float("inf")], "not finite"),
    ],
)
def test_other_values_are_refused(kind: FieldType, value: Any, problem: str) -> None:
    with pytest.raises(InvalidDocumentError, match=problem):
        field_values("f", kind, value)


def test_a_number_that_was_written_before_it_was_refused_is_read_as_it_was() -> None:
    assert field_values("f", "number", 2**53 + 1, rounded=True) == [2.0**53]
    assert field_values("f", "integer", 2**53 + 1, rounded=True) == [2**53 + 1]


def test_a_code_outside_the_strings_is_damage(tmp_path: Path, make_columns: Any) -> None:
    fields: dict[str, FieldType] = {"tags": "keyword"}
    writer = FieldsWriter(ArrayFolder(tmp_path), fields, field_stems(fields))
    writer.append(make_columns(fields, [{"tags": [b"red"]}, {"tags": [b"blue"]}]), 2)
    writer.finish()
    codes = np.load(tmp_path / "field_000_codes.npy", mmap_mode="r+")
    for code in (-1, 2):
        codes[1] = code
        codes.flush()
        with pytest.raises(DamagedIndexError, match=r"field_000_codes.npy names a string outside the 2"):
            open_columns(ArrayFolder(tmp_path), fields, field_stems(fields), 2)


def test_a_message_shows_the_beginning_of_a_long_value() -> None:
    with pytest.raises(InvalidDocumentError) as failure:
        field_values("year", "integer", "x" * 10_000)
    assert len(str(failure.value)) < 200
