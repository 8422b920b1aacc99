"""Values and failures in messages: JSON, and the words of the system."""

import errno
from pathlib import Path

import pytest

from tercet.index.wording import failure_text, names_instead, reason_of, shown, without_names_instead


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (None, "null"),
        ("it's", '"it\'s"'),
        (("a", 1.5), '["a", 1.5]'),
        ({"a": [None]}, '{"a": [null]}'),
        ("한\ud800\x1b\u202e", '"한\\ud800\\u001b\\u202e"'),
        (10**1000, "an integer of 3322 bits"),
        ("a" * 200, '"' + "a" * 80 + '…"'),
        (Path("a"), '"a"'),
        ({(1, 2): 3}, "dict"),
    ],
)
def test_values_are_as_json_has_them(value: object, text: str) -> None:
    assert shown(value) == text


def test_names_stand_in_for_one_that_is_not_there() -> None:
    names = ["rail", "tea", "teas", "water", "wood"]
    assert names_instead("watre", names) == ", or did you mean water?"
    assert names_instead("tes", ["tea", "teas"]) == ", or did you mean teas or tea?"
    assert names_instead("xyz", names) == "; there are rail, tea, teas and 2 more"
    assert names_instead("xyz", []) == ""
    for name in ("watre", "xyz"):
        assert without_names_instead("there is none" + names_instead(name, names)) == "there is none"


def test_failures_of_the_system_have_no_numbers() -> None:
    named = OSError(errno.ENOSPC, "No space left on device", "/data/a")
    assert (failure_text(named), reason_of(named)) == (
        "/data/a: No space left on device", "No space left on device"
    )  # fmt: skip
    assert failure_text(OSError(errno.EIO, "Input/output error")) == "Input/output error"
    assert reason_of(RuntimeError("[Errno 111] Connection refused")) == "Connection refused"
    assert reason_of(TimeoutError()) == "TimeoutError"
    assert reason_of(KeyError("size")) == '"size" is missing'
    assert failure_text(ValueError("damaged")) == reason_of(OSError("damaged")) == "damaged"
