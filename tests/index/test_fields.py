"""Declared fields: which values they take, and the columns they become."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from index.errors import InvalidDocumentError
from index.fields import FieldsWriter, FieldType, KeywordColumn, ScalarColumn, field_values, open_columns


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
    ],
)
def test_other_values_are_refused(kind: FieldType, value: Any, problem: str) -> None:
    with pytest.raises(InvalidDocumentError, match=problem):
        field_values("f", kind, value)


def test_columns_hold_every_document_in_order(tmp_path: Path) -> None:
    fields: dict[str, FieldType] = {"tags": "keyword", "year": "integer", "price": "number", "new": "boolean"}
    writer = FieldsWriter(tmp_path, fields)
    writer.append(
        [
            {"tags": [b"red", b"blue"], "year": [2020], "price": [1.5], "new": [True]},
            {"tags": [], "year": [], "price": [], "new": []},
        ]
    )
    writer.append([{"tags": [b"blue"], "year": [-3], "price": [0.0], "new": [False]}])
    writer.finish()
    columns = open_columns(tmp_path, fields, 3)
    tags, year, price, new = (columns[name] for name in ("tags", "year", "price", "new"))
    assert isinstance(tags, KeywordColumn)
    assert [tags.strings[place] for place in range(len(tags.strings))] == [b"blue", b"red"]
    assert tags.codes.tolist() == [1, 0, 0]
    assert tags.rows.tolist() == [0, 0, 2]
    assert isinstance(year, ScalarColumn)
    assert (year.values.tolist(), year.present.tolist()) == ([2020, 0, -3], [True, False, True])
    assert isinstance(price, ScalarColumn)
    assert (price.values.tolist(), price.present.tolist()) == ([1.5, 0.0, 0.0], [True, False, True])
    assert isinstance(new, ScalarColumn)
    assert (new.values.tolist(), new.present.tolist()) == ([True, False, False], [True, False, True])


def test_a_segment_without_values_has_empty_columns(tmp_path: Path) -> None:
    fields: dict[str, FieldType] = {"tags": "keyword", "year": "integer"}
    writer = FieldsWriter(tmp_path, fields)
    writer.append([{"tags": [], "year": []}])
    writer.finish()
    tags = open_columns(tmp_path, fields, 1)["tags"]
    assert isinstance(tags, KeywordColumn)
    assert (len(tags.strings), len(tags.codes)) == (0, 0)
