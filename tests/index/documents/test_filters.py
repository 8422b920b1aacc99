"""Filters: parsed strictly, checked against declared fields, and exact against plain Python."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any
from unicodedata import normalize

import pytest
from hypothesis import strategies as st

from tercet.index.documents.conditions import condition_of
from tercet.index.documents.field_indexes import FieldIndexes, write_indexes
from tercet.index.documents.fields import Column, column_of, field_stems, field_values, open_columns
from tercet.index.documents.fields_writer import FieldsWriter
from tercet.index.documents.filters import (
    And,
    Exists,
    In,
    Not,
    Or,
    Range,
    check_filter,
    parse_filter,
    tree_of,
)
from tercet.index.documents.matching import Matching
from tercet.index.documents.metadata import FieldType
from tercet.index.errors import InvalidQueryError
from tercet.index.files.array_folder import ArrayFolder

FIELDS: dict[str, FieldType] = {
    "tags": "keyword",
    "year": "integer",
    "price": "number",
    "new": "boolean",
    "seen": "datetime",
}
DOCUMENTS: list[dict[str, Any]] = [
    {"tags": ["red", "round"], "year": 2020, "price": 1.5, "new": True, "seen": "2024-05-17T09:30:00Z"},
    {"tags": "blue", "year": 2021, "price": -2.0, "new": False, "seen": "2024-05-17T18:30:00+09:00"},
    {},
    {"tags": [], "year": 2020, "price": 0, "seen": "2024-05-17"},
    {"tags": ["blue", "시"], "year": 2**62 + 1, "new": True, "seen": "2024-05-17T09:30:00.000001"},
]
LISTS: list[dict[str, Any]] = [
    {"year": [2020, 2024, 2020], "seen": ["2024-05-17", "2025-05-17 09:00:00+09:00"]},
    {"year": 2022, "price": [0.5]},
    {"year": [], "price": [0.25, -1, 8]},
    {"year": [2021, 2023], "seen": ["2025-05-17"]},
]


def columns_of(folder: Path, documents: list[dict[str, Any]]) -> dict[str, Column]:
    writer = FieldsWriter(ArrayFolder(folder), FIELDS, field_stems(FIELDS))
    columns = {
        name: column_of(kind, [field_values(name, kind, each.get(name)) for each in documents])
        for name, kind in FIELDS.items()
    }
    writer.append(columns, len(documents))
    writer.finish()
    return open_columns(ArrayFolder(folder), FIELDS, field_stems(FIELDS), len(documents))


def allowed(columns: dict[str, Column], condition: Any, documents: int, stored: Path | None) -> list[int]:
    """The rows that a filter allows, by indexes that were stored in a folder, or by those made in memory."""
    if stored is None:
        indexes = FieldIndexes(columns, documents, {})
    else:
        arrays = ArrayFolder(stored)
        if not arrays.has("field_000_few") and not arrays.has("field_000_sorted"):
            write_indexes(arrays, columns, field_stems(columns), documents)
        indexes = FieldIndexes.open(arrays, columns, field_stems(columns), documents)
        assert indexes.stored().keys() == columns.keys()
    parsed = parse_filter(condition)
    check_filter(parsed, FIELDS)
    return Matching(columns, indexes, documents).rows(condition_of(parsed, FIELDS)).rows.tolist()


def matching(
    columns: dict[str, Column], condition: Any, documents: int = len(DOCUMENTS), stored: Path | None = None
) -> list[int]:
    return allowed(columns, condition, documents, stored)


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        ({"eq": {"tags": "blue"}}, [1, 4]),
        ({"eq": {"tags": "green"}}, []),
        ({"in": {"tags": ["round", "시", "green"]}}, [0, 4]),
        ({"in": {"tags": []}}, []),
        ({"gt": {"tags": "blue"}}, [0, 4]),
        ({"gte": {"tags": "blue"}}, [0, 1, 4]),
        ({"lt": {"tags": "red"}}, [1, 4]),
        ({"lte": {"tags": "red"}}, [0, 1, 4]),
        ({"lte": {"tags": "a"}}, []),
        ({"eq": {"tags": "\ud800"}}, []),
        ({"exists": "tags"}, [0, 1, 4]),
        ({"eq": {"year": 2020}}, [0, 3]),
        ({"eq": {"year": 2020.0}}, [0, 3]),
        ({"eq": {"year": 2020.5}}, []),
        ({"eq": {"year": 2**62 + 1}}, [4]),
        ({"eq": {"year": 2**62}}, []),
        ({"gte": {"year": 2**62 + 1}}, [4]),
        ({"gt": {"year": 2**62 + 1}}, []),
        ({"gte": {"year": 2020.5}}, [1, 4]),
        ({"gt": {"year": 2020}}, [1, 4]),
        ({"lt": {"year": 2020.5}}, [0, 3]),
        ({"lt": {"price": 0}}, [1]),
        ({"lte": {"price": 0}}, [1, 3]),
        ({"in": {"price": [1.5, 0]}}, [0, 3]),
        ({"eq": {"new": False}}, [1]),
        ({"in": {"new": [True, False]}}, [0, 1, 4]),
        ({"exists": "new"}, [0, 1, 4]),
        ({"not": {"eq": {"year": 2020}}}, [1, 2, 4]),
        ({"not": {"exists": "year"}}, [2]),
        ({"and": [{"eq": {"tags": "blue"}}, {"eq": {"new": True}}]}, [4]),
        ({"or": [{"eq": {"tags": "red"}}, {"not": {"exists": "price"}}]}, [0, 2, 4]),
        ({"and": [{"exists": "tags"}]}, [0, 1, 4]),
        ({"gte": {"tags": ""}}, [0, 1, 4]),
        ({"lt": {"tags": ""}}, []),
        ({"and": [{"gte": {"tags": "s"}}, {"lt": {"tags": "c"}}]}, [4]),
        ({"and": [{"gt": {"year": 2019}}, {"lt": {"year": 2021}}]}, [0, 3]),
        ({"or": [{"lt": {"price": 0}}, {"gt": {"price": 1}}]}, [0, 1]),
        ({"and": [{"not": {"eq": {"tags": "red"}}}, {"not": {"eq": {"year": 2021}}}]}, [2, 3, 4]),
        ({"and": [{"eq": {"year": 2020}}, {"not": {"eq": {"year": 2020}}}]}, []),
        ({"or": [{"eq": {"year": 2020}}, {"not": {"eq": {"year": 2020}}}]}, [0, 1, 2, 3, 4]),
        ({"lte": {"year": 2**63 - 1}}, [0, 1, 3, 4]),
        ({"gt": {"year": 2**63 - 1}}, []),
        ({"gte": {"year": -(2**63)}}, [0, 1, 3, 4]),
        ({"gte": {"price": -sys.float_info.max}}, [0, 1, 3]),
        ({"lt": {"price": -sys.float_info.max}}, []),
        ({"eq": {"price": -0.0}}, [3]),
        ({"gt": {"price": -0.0}}, [0]),
        ({"lt": {"price": 5e-324}}, [1, 3]),
        ({"eq": {"seen": "2024-05-17T09:30:00Z"}}, [0, 1]),
        ({"gt": {"seen": "2024-05-17T04:30:00-05:00"}}, [4]),
        ({"lt": {"seen": "2024-05-17T09:30:00.000001Z"}}, [0, 1, 3]),
        ({"in": {"seen": ["2024-05-17T00:00:00Z", "1970-01-01"]}}, [3]),
        ({"not": {"exists": "seen"}}, [2]),
    ],
)
def test_conditions_match_the_right_documents(tmp_path: Path, condition: Any, rows: list[int]) -> None:
    columns = columns_of(tmp_path, DOCUMENTS)
    assert matching(columns, condition) == matching(columns, condition, stored=tmp_path) == rows


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        ({"eq": {"year": 2020}}, [0]),
        ({"in": {"year": [2022, 2023, 2024]}}, [0, 1, 3]),
        ({"gt": {"year": 2022}}, [0, 3]),
        ({"not": {"gt": {"year": 2022}}}, [1, 2]),
        ({"exists": "year"}, [0, 1, 3]),
        # One value may be on one side, and another one on the other.
        ({"and": [{"gt": {"year": 2021}}, {"lt": {"year": 2023}}]}, [0, 1, 3]),
        ({"and": [{"eq": {"year": 2020}}, {"eq": {"year": 2024}}]}, [0]),
        ({"or": [{"not": {"lt": {"year": 2022}}}, {"not": {"gt": {"year": 2022}}}]}, [1, 2]),
        ({"lt": {"price": 0}}, [2]),
        ({"gte": {"price": 0.5}}, [1, 2]),
        ({"eq": {"seen": "2025-05-17T00:00:00Z"}}, [0, 3]),
        ({"lt": {"seen": "2025-01-01"}}, [0]),
    ],
)
def test_one_value_of_a_list_is_enough(tmp_path: Path, condition: Any, rows: list[int]) -> None:
    columns = columns_of(tmp_path, LISTS)
    assert matching(columns, condition, len(LISTS)) == rows
    assert matching(columns, condition, len(LISTS), tmp_path) == rows


def test_a_tree_becomes_json_again() -> None:
    trees = [
        {"eq": {"year": 2020}},
        {"in": {"tags": []}},
        {"in": {"tags": ["red", "blue"]}},
        {"or": [{"not": {"exists": "seen"}}, {"and": [{"gte": {"price": 1.5}}, {"lt": {"year": 3}}]}]},
        {"and": [{"in": {"year": list(range(9999))}}, {"eq": {"new": True}}]},
        {"and": [{"in": {"year": list(range(10_000))}}, {"eq": {"new": True}}]},
    ]
    for tree in trees:
        assert tree_of(parse_filter(tree)) == tree


def test_json_becomes_a_tree() -> None:
    assert parse_filter({"and": [{"gte": {"year": 2020}}, {"not": {"or": [{"exists": "tags"}]}}]}) == And(
        (Range("year", "gte", 2020), Not(Or((Exists("tags"),))))
    )
    assert parse_filter({"eq": {"tags": "a"}}) == In("tags", ("a",))
    assert parse_filter({"in": {"tags": ["a", "b"]}}) == In("tags", ("a", "b"))


def nested(levels: int) -> Any:
    condition: Any = {"exists": "year"}
    for _ in range(levels):
        condition = {"not": condition}
    return condition


@pytest.mark.parametrize(
    ("condition", "problem"),
    [
        (None, "exactly one key"),
        ([], "exactly one key"),
        ({}, "exactly one key"),
        ({"eq": {"a": 1}, "gt": {"a": 1}}, "exactly one key"),
        ({"eq": {"a": 1, "b": 2}}, "exactly one key"),
        ({"eq": {}}, "exactly one key"),
        ({"like": {"a": "b"}}, "'like' is unknown"),
        ({"and": []}, "at least one"),
        ({"or": {"eq": {"a": 1}}}, "at least one"),
        ({"and": [1]}, "exactly one key"),
        ({"exists": ["a"]}, "takes a field's name"),
        ({"in": {"a": "b"}}, "takes a list"),
        ({"in": {"a": [[1]]}}, "a filter value is a list"),
        ({"eq": {"a": None}}, "a filter value is null; for documents without one"),
        ({"eq": {"a": float("nan")}}, "not finite"),
        ({"gte": {"a": float("inf")}}, "not finite"),
        ({"eq": {"a": 2**64}}, "the integer 18446744073709551616 does not fit in 64 bits"),
        ({"in": {"a": ["x", -(2**63) - 1]}}, "does not fit in 64 bits"),
        ({"in": {"a": [1, 10**400, 2]}}, "the integer of 1329 bits does not fit"),
        ({1: 2}, "has the key 1"),
        (nested(16), "deeper than 16"),
        (nested(100_000), "deeper than 16"),
        ({"or": [{"exists": "year"}] * 1000}, "more than 1000 conditions"),
        ({"in": {"year": list(range(10_001))}}, "more than 10000 values"),
        ({"or": [{"in": {"year": list(range(5_001))}}] * 2}, "more than 10000 values"),
    ],
)
def test_anything_else_is_refused(condition: Any, problem: str) -> None:
    with pytest.raises(InvalidQueryError, match=problem):
        parse_filter(condition)


def test_a_field_in_another_unicode_form_is_told_apart() -> None:
    condition = parse_filter({"eq": {normalize("NFD", "차"): "녹차"}})
    with pytest.raises(InvalidQueryError, match=r"write it as '\\ucc28', not '\\u110e\\u1161'"):
        check_filter(condition, {"차": "keyword"})


@pytest.mark.parametrize(
    ("condition", "problem"),
    [
        (
            {"eq": {"color": "red"}},
            "'color' is not declared.*new, price, seen, tags, year.*POST /collections/{name}/fields",
        ),
        ({"not": {"or": [{"exists": "color"}]}}, "'color' is not declared"),
        ({"eq": {"tags": 1}}, "'tags' is keyword"),
        ({"eq": {"year": "2020"}}, "'year' is integer"),
        ({"eq": {"year": True}}, "'year' is integer"),
        ({"gte": {"price": "1"}}, "'price' is number"),
        (
            {"eq": {"price": 2**53 + 1}},
            "'price' is number, but .* with 9007199254740993 is beyond ±900719925474099",
        ),
        ({"in": {"price": [1, 2**60, 3]}}, "with 1152921504606846976 is beyond"),
        ({"lt": {"price": -(2**60)}}, "beyond"),
        (
            {"eq": {"year": 2**63}},
            "'year' is integer, but .* with 9223372036854775808 does not fit in 64 bits",
        ),
        ({"in": {"year": [1, -(2**63), 2**63]}}, "does not fit in 64 bits"),
        ({"gte": {"year": 2.0**62}}, "a float beyond ±9007199254740992"),
        ({"lte": {"year": 1e300}}, "a float beyond"),
        ({"eq": {"new": 1}}, "'new' is boolean"),
        ({"gt": {"new": True}}, "no order"),
        ({"eq": {"seen": 3}}, "'seen' is datetime"),
        ({"in": {"seen": ["2024-05-17", "yesterday"]}}, 'compares it with "yesterday": use a form such as'),
    ],
)
def test_filters_fit_the_declared_fields(condition: Any, problem: str) -> None:
    with pytest.raises(InvalidQueryError, match=problem):
        check_filter(parse_filter(condition), FIELDS)


def test_limits_are_reached_not_passed(tmp_path: Path) -> None:
    columns = columns_of(tmp_path, DOCUMENTS)
    assert matching(columns, nested(15)) == [2]
    assert matching(columns, {"in": {"year": list(range(10_000))}}) == [0, 1, 3]


words = st.sampled_from(["", "a", "ab", "b", "시"])
numbers = st.integers(-3, 3)
moments = st.sampled_from(["2024-01-01", "2024-01-01T01:00:00+01:00", "2024-01-01T00:00:00.5Z", "2025-06-30"])


def several(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(values, st.lists(values, max_size=3))


documents = st.fixed_dictionaries(
    {},
    optional={
        "tags": st.one_of(words, st.lists(words, max_size=3)),
        "year": several(st.one_of(numbers, st.sampled_from([2**53, 2**63 - 1, -(2**63)]))),
        "price": several(st.one_of(st.floats(-3, 3, width=16), st.sampled_from([2.0**53, -0.0, 1e300]))),
        "new": st.booleans(),
        "seen": several(moments),
    },
)
