"""Decays by hand, and boosts that do not fit the fields."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tercet.index.documents.boosts import Curve, DecayBoost, FilterBoost, check_boosts
from tercet.index.documents.filters import parse_filter
from tercet.index.documents.metadata import FieldType
from tercet.index.errors import InvalidQueryError

DAY = 86_400e6  # microseconds
FIELDS: dict[str, FieldType] = {
    "published": "datetime",
    "price": "number",
    "year": "integer",
    "lang": "keyword",
    "sold": "boolean",
}
RECENT = DecayBoost("published", "exp", "1970-01-11", "5d", 0.2)
CHEAP = DecayBoost("price", "linear", 10, 4, 0.2)


@pytest.mark.parametrize(
    ("decay", "expected"),
    [
        ("exp", [1, 1, math.sqrt(0.5), 0.5, 0.25, 0.5**5]),
        ("gauss", [1, 1, 0.5**0.25, 0.5, 0.5**4, 0.5**25]),
        ("linear", [1, 1, 0.75, 0.5, 0, 0]),
    ],
)
def test_decays_are_one_up_to_the_offset_and_half_at_the_scale(decay: Any, expected: list[float]) -> None:
    curve = Curve.of(replace(CHEAP, decay=decay, offset=1), "number")
    for side in (1, -1):
        values = 10 + side * np.array([0, 1, 3, 5, 9, 21])
        assert curve.shares(values).tolist() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("decay", ["exp", "gauss", "linear"])
def test_the_share_at_the_scale_may_be_another(decay: Any) -> None:
    curve = Curve.of(replace(CHEAP, decay=decay, at_scale=0.2), "integer")
    assert curve.shares(np.array([6.0, 14.0])).tolist() == pytest.approx([0.2, 0.2])


def test_moments_decay_by_durations() -> None:
    curve = Curve.of(replace(RECENT, offset="12h"), "datetime")
    values = np.array([10, 10.5, 4.5, 15.5]) * DAY
    assert curve.shares(values).tolist() == pytest.approx([1, 1, 0.5, 0.5])
    durations = {"90s": 90e6, "2m": 120e6, "1.5h": 5400e6, "3d": 3 * DAY, "2w": 14 * DAY}
    for text, microseconds in durations.items():
        assert Curve.of(replace(RECENT, scale=text), "datetime").scale == microseconds


def test_what_is_infinitely_far_away_gets_nothing() -> None:
    for decay in ("exp", "gauss", "linear"):
        curve = Curve.of(DecayBoost("price", decay, -1e308, 1e-300, 1), "number")  # type: ignore[arg-type]
        assert curve.shares(np.array([1.7e308])).tolist() == [0]


@pytest.mark.parametrize(
    ("boost", "named"),
    [
        (replace(CHEAP, add=math.nan), "add is nan; use a number within 1e+06"),
        (replace(CHEAP, add=-math.inf), "add is -inf"),
        (replace(CHEAP, field="cost"), "'cost' is not declared"),
        (replace(CHEAP, field="lang"), "'lang' is keyword; such fields: price, published, year"),
        (replace(CHEAP, decay="log"), 'decay is "log"'),
        (replace(CHEAP, origin="2020-01-01"), "the field is number; use a number"),
        (replace(CHEAP, origin=10**400), "use a finite number"),
        (replace(CHEAP, scale=0), "scale is 0; use more than 0"),
        (replace(CHEAP, scale="30d"), 'scale is "30d", but the field is number'),
        (replace(CHEAP, offset=-1), "offset is -1; use at least 0"),
        (replace(CHEAP, at_scale=1), "at_scale is 1"),
        (replace(RECENT, origin=2020), 'the field is datetime; use such as "2026-01-01"'),
        (replace(RECENT, origin="yesterday"), "is no moment in time"),
        (replace(RECENT, scale="30"), "use a number with s, m, h, d or w"),
        (replace(RECENT, scale="99999999999999999w"), "use at most 9 digits, and 6 behind the point"),
        (replace(RECENT, scale="0d"), 'scale is "0d"; use more than 0'),
        (replace(RECENT, offset="-3d"), 'offset is "-3d"'),
        (FilterBoost(parse_filter({"eq": {"cost": 1}}), 0.1), "'cost' is not declared"),
        (FilterBoost(parse_filter({"eq": {"lang": 1}}), 0.1), "field 'lang' is keyword"),
        (FilterBoost(parse_filter({"exists": "lang"}), math.inf), "add is inf"),
    ],
)
def test_a_boost_that_does_not_fit_is_named(boost: Any, named: str) -> None:
    with pytest.raises(InvalidQueryError, match=r"^boosts\.1: ") as caught:
        check_boosts([RECENT, boost], FIELDS)
    assert named in str(caught.value)


def test_there_is_a_limit_of_boosts() -> None:
    check_boosts([RECENT] * 32, FIELDS)
    with pytest.raises(InvalidQueryError, match="33 boosts are given; the limit is 32"):
        check_boosts([RECENT] * 33, FIELDS)
