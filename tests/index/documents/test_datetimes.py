"""Moments in time: as numbers they compare alike, wherever they were written."""

import pytest

from tercet.index.documents.datetimes import microseconds_of


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [
        ("1970-01-01", 0),
        ("1970-01-01T00:00:01Z", 1_000_000),
        ("1970-01-01T00:00:01", 1_000_000),
        ("1970-01-01T09:00:00+09:00", 0),
        ("1969-12-31T19:00:00-05:00", 0),
        ("1970-01-01T00:00:00.5Z", 500_000),
        ("1970-01-01T00:00:00.123456789Z", 123_456),
        ("1969-12-31T23:59:59.999999Z", -1),
        ("2024-02-29T12:00:00Z", 1_709_208_000_000_000),
        ("0001-01-01T00:00:00+23:59", -62_135_596_800_000_000 - 86_340_000_000),
        ("1970-01-01 00:00:01", 1_000_000),
        ("1970-01-01 09:00:00.5+09:00", 500_000),
        ("1970-01-01 09:00:00+09", 0),
        ("1969-12-31T18:30:00-0530", 0),
        ("9999-12-31T23:59:59-23:59", 253_402_300_799_000_000 + 86_340_000_000),
    ],
)
def test_a_moment_is_its_microseconds_since_1970(text: str, microseconds: int) -> None:
    assert microseconds_of(text) == microseconds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yesterday",
        "2024-05-17  09:30:00",
        "2024-05-17 09:30:00 +09:00",
        "2024-05-17T09:30",
        "2024-05-17T09:30:00+9",
        "2024-05-17T09:30:00+09:0",
        "2024-05-17t09:30:00z",
        "2024-05-17T09:30:00.Z",
        "2024-05-17T09:30:00.1234567890Z",
        "20240517",
        "2024-5-17",
        "٢٠٢٤-05-17",
        "1715938200",
    ],
)
def test_another_string_is_refused_with_the_form_to_use(text: str) -> None:
    with pytest.raises(ValueError, match="use a form such as 2024-05-17T09:30:00Z"):
        microseconds_of(text)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("2023-02-29", "day"),
        ("2024-13-01", "month"),
        ("0000-01-01", "year"),
        ("2024-05-17T24:00:00Z", "hour"),
        ("2024-05-17T09:60:00Z", "minute"),
        ("2024-05-17T23:59:60Z", "second"),
        ("2024-05-17T09:30:00+24:00", r"its offset \+24:00 is beyond 23:59"),
        ("2024-05-17T09:30:00+24", r"its offset \+24:00 is beyond 23:59"),
        ("2024-05-17T09:30:00-09:60", "its offset -09:60 is beyond 23:59"),
    ],
)
def test_a_moment_that_no_calendar_has_is_refused(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        microseconds_of(text)
