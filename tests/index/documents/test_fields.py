"""Declared fields: which values they take, and how columns are opened."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from index.documents.fields import FieldType, field_values, open_columns
from index.documents.fields_writer import FieldsWriter
from index.errors import DamagedIndexError, InvalidDocumentError
from index.files.array_folder import ArrayFolder


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("keyword", "red", [b"red"]),
        ("keyword", ["b", "a", "a"], [b"b", b"a", b"a"]),
        ("keyword", [], []),
        ("keyword", None, []),
        ("integer", -(2**63), [-(2**63)]),
        ("integer", 0, [0]),
        ("number", 3, [3.0]),
        ("number", 2.5, [2.5]),
        ("boolean", False, [False]),
        ("datetime", "1970-01-01T09:00:01+09:00", [1_000_000]),
        ("datetime", "1970-01-02", [86_400_000_000]),
        ("datetime", None, []),
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
        ("keyword", ["a", None], "holds None"),
        ("keyword", "x" * 1025, "1025 bytes; the limit is 1024"),
        ("keyword", "\ud800", "not UTF-8"),
        ("integer", 1.0, "declared as integer, but the value is 1.0"),
        ("integer", True, "declared as integer"),
        ("integer", "1", "declared as integer"),
        ("integer", 2**63, "does not fit in 64 bits"),
        ("number", "1", "declared as number"),
        ("number", True, "declared as number"),
        ("number", float("nan"), "not finite"),
        ("number", 10**400, "too large"),
        ("boolean", 1, "declared as boolean"),
        ("boolean", [True], "declared as boolean"),
        ("datetime", 1715938200, "declared as datetime, but the value is 1715938200"),
        (
            "datetime",
            "17.5.2024",
            "'17.5.2024' is no moment in time: use a form such as 2024-05-17T09:30:00Z",
        ),
        ("datetime", ["2024-05-17"], "declared as datetime"),
    ],
)
def test_other_values_are_refused(kind: FieldType, value: Any, problem: str) -> None:
    with pytest.raises(InvalidDocumentError, match=problem):
        field_values("f", kind, value)


def test_a_code_outside_the_strings_is_damage(tmp_path: Path, make_columns: Any) -> None:
    fields: dict[str, FieldType] = {"tags": "keyword"}
    writer = FieldsWriter(ArrayFolder(tmp_path), fields)
    writer.append(make_columns(fields, [{"tags": [b"red"]}, {"tags": [b"blue"]}]), 2)
    writer.finish()
    codes = np.load(tmp_path / "field_000_codes.npy", mmap_mode="r+")
    for code in (-1, 2):
        codes[1] = code
        codes.flush()
        with pytest.raises(DamagedIndexError, match=r"field_000_codes.npy names a string outside the 2"):
            open_columns(ArrayFolder(tmp_path), fields, 2)


def test_a_message_shows_the_beginning_of_a_long_value() -> None:
    with pytest.raises(InvalidDocumentError) as failure:
        field_values("year", "integer", "x" * 10_000)
    assert len(str(failure.value)) < 200
