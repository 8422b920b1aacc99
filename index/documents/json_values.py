"""JSON text to values, none of which changes on the way.

orjson makes floats of integers beyond 64 bits, and so other numbers of them. Here they stay whole, for those
who take the value to refuse by name.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import orjson

from tercet.index.documents.metadata import MAX_METADATA_LEVELS

TOO_DEEP = f"it nests too deep; metadata may have {MAX_METADATA_LEVELS} levels, so flatten it"
_ORJSON_TOO_DEEP = "depth limit exceeded"  # of more than 1,024 levels
_ORJSON_NO_MEMORY = "Not enough memory"
_DIGITS, _BEFORE = b"0123456789", b",[: \t\r\n"  # before: what an integer without a sign follows
_ALIKE = bytes(0x30 if code in _DIGITS else 0x2C if code in _BEFORE else code for code in range(256))
_POSITIVE, _NEGATIVE = b"," + b"0" * 20, b"-" + b"0" * 19  # as short as an integer beyond 64 bits can be
_SHORT_BYTES = 4096  # in more than these NumPy sees quicker that there are no such digits


def loads(text: bytes) -> Any:
    """The value of a JSON text in UTF-8: strict, as orjson is, with integers of any size.

    Raises orjson.JSONDecodeError, as well for integers of more than 4,300 digits, or MemoryError.
    """
    try:
        value = orjson.loads(text)
        return json.loads(text.decode()) if may_hold_long_integers(text) else value
    except orjson.JSONDecodeError as error:
        if _ORJSON_TOO_DEEP in error.msg:
            raise _too_deep() from error
        if error.msg.startswith(_ORJSON_NO_MEMORY):
            raise MemoryError from error
        raise
    except RecursionError as error:
        raise _too_deep() from error
    except ValueError as error:  # of what orjson took, only so many digits are left
        raise orjson.JSONDecodeError(str(error), "", 0) from error


def _too_deep() -> orjson.JSONDecodeError:
    return orjson.JSONDecodeError(TOO_DEEP, "", 0)


def may_hold_long_integers(text: bytes) -> bool:
    """Whether there are digits enough for an integer beyond 64 bits, be it in a string."""
    if len(text) > _SHORT_BYTES and not _has_digits(text):
        return False
    alike = text.translate(_ALIKE)
    return _POSITIVE in alike or _NEGATIVE in alike or alike.startswith(_POSITIVE[1:])


def _has_digits(text: bytes) -> bool:
    """Whether 19 digits follow one another."""
    run = np.frombuffer(text, np.uint8) - np.uint8(0x30) < 10
    for step in (1, 2, 4, 8, 3):  # runs of 2, 4, 8, 16 and 19
        run = run[step:] & run[:-step]
    return bool(run.any())
