"""JSON text to values, none of which changes on the way.

orjson makes floats of integers beyond 64 bits, and so other numbers of them. Here they stay whole, for those
who take the value to refuse by name.
"""

from __future__ import annotations

import json
from typing import Any

import orjson

from index.documents.metadata import MAX_METADATA_LEVELS

_DIGITS_AS_ZERO = bytes(0x30 if 0x30 <= code <= 0x39 else code for code in range(256))
_TOO_DEEP = "depth limit exceeded"  # as orjson says of more than 1,024 levels
_POSITIVE, _NEGATIVE = b"0" * 20, b"-" + b"0" * 19  # as short as an integer beyond 64 bits can be


def loads(text: bytes) -> Any:
    """The value of a JSON text in UTF-8: strict, as orjson is, with integers of any size.

    Raises orjson.JSONDecodeError, as well for integers of more than 4,300 digits.
    """
    try:
        value = orjson.loads(text)
        return json.loads(text.decode()) if may_hold_long_integers(text) else value
    except orjson.JSONDecodeError as error:
        if _TOO_DEEP in error.msg:
            raise _too_deep() from error
        raise
    except RecursionError as error:
        raise _too_deep() from error
    except ValueError as error:  # of what orjson took, only so many digits are left
        raise orjson.JSONDecodeError(str(error), "", 0) from error


def _too_deep() -> orjson.JSONDecodeError:
    return orjson.JSONDecodeError(
        f"it nests too deep; metadata may have {MAX_METADATA_LEVELS} levels, so flatten it", "", 0
    )


def may_hold_long_integers(text: bytes) -> bool:
    """Whether there are digits enough for an integer beyond 64 bits, be it in a string or a fraction."""
    digits = text.translate(_DIGITS_AS_ZERO)
    return _POSITIVE in digits or _NEGATIVE in digits
