"""JSON that is none: what is said of it."""

import gzip

import orjson
import pytest

from tercet.index.documents.json_values import loads
from tercet.service.http.why_not_json import why_not_json


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1,\n "é": NaN}', "line 2, column 7 has NaN: JSON has no such number; use null"),
        ('{"a": -Infinity}', "line 1, column 7 has -Infinity: JSON has no such number; use null"),
        ('{"é": "é\\ud800"}', "line 1, column 9 has \\ud800: half a character; send both halves"),
        ('{"a": "x\\udc00"}', "line 1, column 9 has \\udc00: half a character; send both halves"),
        (
            '{"a": 1' + "0" * 400 + "}",
            "line 1, column 7 has 10000000000000000000…: beyond 1.8e308, the largest number",
        ),
        ('{"a": True}', "line 1, column 7 has True: JSON has true, false and null"),
        ("{'a': 1}", "line 1, column 2 has ': a field's name belongs here, in double quotes"),
        ('{"a": 1,}', "line 1, column 8 has ,: no value follows; leave the comma out"),
        ('{"a": +1}', "line 1, column 7 has +1: a number begins with a digit"),
        ("[1 2]", "line 1, column 4 has 2: ',' or ']' belongs here"),
        ('{"a": "x\ny"}', "line 1, column 9 has \\n: a string has no such character"),
        ("garbage", "line 1, column 1 has garbage: a value belongs here"),
        ('{"a": [1,\n2', "it ends at line 2, column 2, too early: close every string, list and object"),
        ("\ufeff{}", "line 1, column 1 has \\ufeff: a byte order mark; leave it out"),
        ("[" * 1500 + "]" * 1500, "it nests too deep"),
    ],
)
def test_the_place_what_stands_there_and_the_remedy(text: str, message: str) -> None:
    with pytest.raises(orjson.JSONDecodeError) as raised:
        loads(text.encode())
    assert why_not_json(text.encode(), raised.value).startswith(message)


def test_bytes_that_are_not_utf8() -> None:
    error = orjson.JSONDecodeError("", "", 0)
    assert why_not_json(b'"a\xff"', error) == "byte 3 is 0xff, which is not UTF-8; send UTF-8"


def test_a_packed_body_whose_coding_is_not_named() -> None:
    why = why_not_json(gzip.compress(b"{}"), orjson.JSONDecodeError("", "", 0))
    assert why == "it begins as gzip does; say so with the header Content-Encoding: gzip"
