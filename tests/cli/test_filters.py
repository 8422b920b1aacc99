"""Conditions of `--filter`, in short and as JSON."""

from __future__ import annotations

from typing import Any

import pytest
import typer

from tercet.cli.filters import checked_filter
from tercet.index.errors import InvalidQueryError


@pytest.mark.parametrize(
    ("condition", "tree"),
    [
        ("lang=en", {"eq": {"lang": "en"}}),
        ("lang != en", {"not": {"eq": {"lang": "en"}}}),
        ("year>=2020", {"gte": {"year": 2020}}),
        ("year < 1999.5", {"lt": {"year": 1999.5}}),
        ("year<=-1", {"lte": {"year": -1}}),
        ("published>2026-01-31", {"gt": {"published": "2026-01-31"}}),
        ("public=true", {"eq": {"public": True}}),
        ("code=007", {"eq": {"code": "007"}}),
        ('code="12"', {"eq": {"code": "12"}}),
        ("url=http://a/?b=c", {"eq": {"url": "http://a/?b=c"}}),
        ("note=null", {"eq": {"note": "null"}}),
        ('{"exists": "year"}', {"exists": "year"}),
    ],
)
def test_a_condition_in_short_is_a_filter(condition: str, tree: Any) -> None:
    assert checked_filter([condition]) == tree


def test_all_conditions_must_hold() -> None:
    assert checked_filter(None) is None
    conditions = ["lang=en", "year>=2020", '{"exists": "author"}']
    parts = [{"eq": {"lang": "en"}}, {"gte": {"year": 2020}}, {"exists": "author"}]
    assert checked_filter(conditions) == {"and": parts}


@pytest.mark.parametrize("condition", ["lang", "=en", "lang=", "year>", "lang==en", ""])
def test_what_is_no_condition_is_told_with_one_that_is(condition: str) -> None:
    with pytest.raises(typer.BadParameter, match=r"is no condition; write one such as lang=en"):
        checked_filter([condition])


def test_wrong_json_is_told() -> None:
    with pytest.raises(typer.BadParameter, match="is not JSON"):
        checked_filter(['{"eq": '])
    with pytest.raises(InvalidQueryError, match="near"):
        checked_filter(['{"near": {}}'])
