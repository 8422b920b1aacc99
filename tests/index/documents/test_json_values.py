"""JSON text to values: strict, and with integers whole."""

from __future__ import annotations

import json

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tercet.index.documents.json_values import loads, may_hold_long_integers


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b"18446744073709551615", 2**64 - 1),
        (b"18446744073709551616", 2**64),  # orjson gives 1.8446744073709552e19
        (b"-9223372036854775808", -(2**63)),
        (b"-9223372036854775809", -(2**63) - 1),
        (b'{"a": [1, 100000000000000000000001]}', {"a": [1, 10**23 + 1]}),
        (b'"18446744073709551616"', "18446744073709551616"),
        (b"0.12345678901234567890123", 0.12345678901234568),
        (b"12345678901234567890.5", 12345678901234567890.5),
        (b"1e22", 1e22),
        (b" \n18446744073709551616 ", 2**64),
        (b"[1,\t18446744073709551616]", [1, 2**64]),
        (b"[" + b"0.5," * 2000 + b"18446744073709551616]", [0.5] * 2000 + [2**64]),  # a large one
        (b"[" + b"0.5," * 2000 + b"-9999999999999999999]", [0.5] * 2000 + [-9999999999999999999]),
    ],
)
def test_no_value_changes(text: bytes, value: object) -> None:
    found = loads(text)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    "text",
    [b"NaN", b"1e400", b"01", b'"\\ud800"', b'"\xff"', "1".encode("utf-16"), b"1" * 5000, b"[" * 9000],
)
@pytest.mark.parametrize("beside", [b"", b"18446744073709551616"])
def test_what_is_not_json_stays_so(text: bytes, beside: bytes) -> None:
    with pytest.raises(orjson.JSONDecodeError):
        loads(b"[%b,%b]" % (text, beside or b"0"))


def test_too_deep_a_text_names_the_limit_of_metadata() -> None:
    for text in (b"[" * 2000 + b"]" * 2000, b"[18446744073709551616," + b"[" * 2000 + b"]" * 2001):
        with pytest.raises(orjson.JSONDecodeError, match="metadata may have 64 levels"):
            loads(text)


numbers = st.one_of(
    st.integers(), st.integers(2**62, 2**66), st.integers(-(2**66), -(2**62)), st.floats(0, 1)
)
values = st.recursive(
    st.one_of(numbers, st.text(), st.integers().map(str)),
    lambda inner: st.one_of(st.lists(inner), st.dictionaries(st.text(), inner)),
)


@pytest.mark.slow
@given(values)
def test_as_python_reads_it(value: object) -> None:
    text = json.dumps(value).encode()
    assert json.dumps(loads(text)) == text.decode()


@pytest.mark.parametrize(
    "text",
    [
        b"[1715938200123456789]",
        b"[0.12345678901234567]",
        b"[0.000123456789012345678]",
        b"[-123456789012345678]",
        b'["12345678901234567890"]',
        b"[" + b"0.000123456789012345678," * 1000 + b"1]",
    ],
)
def test_common_long_numbers_are_not_read_twice(text: bytes) -> None:
    assert not may_hold_long_integers(text)


def test_want_of_memory_is_no_mistake_of_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    def want(_text: bytes) -> None:
        raise orjson.JSONDecodeError("Not enough memory to allocate buffer for parsing", "", 0)

    monkeypatch.setattr(orjson, "loads", want)
    with pytest.raises(MemoryError):
        loads(b"{}")
