"""Filters in one form each: equal ones become the same, others do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tercet.index.documents.conditions import EVERYTHING, NOTHING, OneOf, condition_of
from tercet.index.documents.filters import check_filter, parse_filter
from tercet.index.documents.metadata import FieldType

FIELDS: dict[str, FieldType] = {
    "tags": "keyword",
    "year": "integer",
    "price": "number",
    "new": "boolean",
    "seen": "datetime",
}
RED: Any = {"eq": {"tags": "red"}}
BLUE: Any = {"eq": {"tags": "blue"}}
NEW: Any = {"eq": {"new": True}}


def key(filter: Any) -> bytes:
    parsed = parse_filter(filter)
    check_filter(parsed, FIELDS)
    return condition_of(parsed, FIELDS).key


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (RED, {"in": {"tags": ["red", "red"]}}),
        ({"in": {"tags": ["blue", "red"]}}, {"or": [RED, BLUE]}),
        ({"and": [RED, NEW]}, {"and": [NEW, {"and": [RED, RED]}]}),
        ({"or": [RED, {"or": [NEW, BLUE]}]}, {"or": [NEW, {"in": {"tags": ["red", "blue"]}}]}),
        (RED, {"not": {"not": RED}}),
        (RED, {"and": [{"or": [RED]}]}),
        ({"and": [{"not": RED}, {"not": NEW}]}, {"not": {"or": [NEW, RED]}}),
        ({"or": [{"not": RED}, {"not": NEW}]}, {"not": {"and": [NEW, RED]}}),
        ({"gt": {"year": 3}}, {"gte": {"year": 3.5}}),
        ({"lte": {"year": 3}}, {"lt": {"year": 4}}),
        ({"or": [{"lt": {"year": 3}}, {"lte": {"year": 7}}]}, {"lte": {"year": 7.5}}),
        ({"in": {"year": [3, 4]}}, {"or": [{"eq": {"year": 4}}, {"eq": {"year": 3.0}}]}),
        ({"or": [{"lt": {"year": 3}}, {"gte": {"year": 3}}]}, {"exists": "year"}),
        ({"lte": {"year": 2**63 - 1}}, {"exists": "year"}),
        ({"eq": {"price": 0.0}}, {"eq": {"price": -0.0}}),
        ({"or": [{"gt": {"price": 3}}, {"lte": {"price": 3}}, {"gt": {"price": 9}}]}, {"exists": "price"}),
        ({"gt": {"price": 2**53}}, {"gte": {"price": 2.0**53 + 2}}),
        ({"in": {"new": [True, False]}}, {"exists": "new"}),
        ({"gte": {"tags": ""}}, {"exists": "tags"}),
        ({"gt": {"tags": "a"}}, {"gte": {"tags": "a\0"}}),
        ({"eq": {"seen": "2024-05-17"}}, {"eq": {"seen": "2024-05-17T09:00:00+09:00"}}),
    ],
)
def test_equal_filters_are_the_same_condition(one: Any, other: Any) -> None:
    assert key(one) == key(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (RED, BLUE),
        (RED, {"not": RED}),
        ({"and": [RED, NEW]}, {"or": [RED, NEW]}),
        ({"and": [RED, BLUE]}, {"in": {"tags": []}}),  # a list of strings may have both
        # A list of numbers may have one of 3 or more, and another of 3 or less.
        ({"and": [{"gte": {"year": 3}}, {"lte": {"year": 3}}]}, {"eq": {"year": 3}}),
        ({"and": [{"lt": {"year": 3}}, {"gt": {"year": 3}}]}, {"in": {"year": []}}),
        ({"eq": {"year": 3}}, {"eq": {"price": 3}}),
        ({"gt": {"price": 3}}, {"gte": {"price": 3}}),
        ({"in": {"tags": ["ab", "c"]}}, {"in": {"tags": ["a", "bc"]}}),
        ({"and": [{"gte": {"tags": "a"}}, {"lt": {"tags": "b"}}]}, {"gte": {"tags": "a"}}),
    ],
)
def test_other_filters_are_other_conditions(one: Any, other: Any) -> None:
    assert key(one) != key(other)


@pytest.mark.parametrize(
    "filter",
    [
        {"in": {"tags": []}},
        {"eq": {"year": 2.5}},
        {"and": [NEW, {"in": {"tags": []}}]},
        {"gt": {"price": 1.7976931348623157e308}},
        {"not": {"or": [RED, {"not": {"in": {"year": []}}}]}},
    ],
)
def test_what_no_document_can_match_is_nothing(filter: Any) -> None:
    assert key(filter) == NOTHING.key
    assert key({"not": filter}) == EVERYTHING.key
    assert key({"or": [filter, RED]}) == key({"and": [{"not": filter}, RED]}) == key(RED)


def test_a_string_matches_in_the_form_that_is_given_and_composed() -> None:
    """Segments of before keywords were composed hold what documents had."""
    condition = condition_of(parse_filter({"eq": {"tags": "cafe\u0301"}}), FIELDS)
    assert isinstance(condition, OneOf)
    assert condition.strings.take(np.arange(2)) == ["cafe\u0301".encode(), "caf\xe9".encode()]
