"""Moments in time as RFC 3339 writes them, as whole numbers that compare alike.

`2024-05-17T09:30:00Z`, with an offset such as `+09:00` for `Z`, and with a fraction of a second where there
is one. Without `Z` or an offset it is UTC, and a date alone, `2024-05-17`, is its midnight in UTC. As
databases and tables write it, a space may stand for the `T`, and the offset may be `+0900` or `+09`.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

_MOMENT = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)"
    r"(?:[T ](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(?:Z|([+-])(\d\d)(?::?(\d\d))?)?)?",
    re.ASCII,
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
MINUTE = 60_000_000  # microseconds


def microseconds_of(text: str) -> int:
    """Microseconds since 1970 in UTC; finer fractions are cut. Raises ValueError for another string."""
    match = _MOMENT.fullmatch(text)
    if match is None:
        raise ValueError(
            "use a form such as 2024-05-17T09:30:00Z, 2024-05-17 09:30:00.25+09:00 or 2024-05-17"
        )
    year, month, day, hour, minute, second, fraction, sign, hours, minutes = match.groups()
    moment = datetime(
        int(year),
        int(month),
        int(day),
        int(hour or 0),
        int(minute or 0),
        int(second or 0),
        int((fraction or "")[:6].ljust(6, "0")),
        UTC,
    )
    if int(hours or 0) > 23 or int(minutes or 0) > 59:
        raise ValueError(f"its offset {sign}{hours}:{minutes or '00'} is beyond 23:59")
    offset = (60 * int(hours or 0) + int(minutes or 0)) * MINUTE
    since = (moment - _EPOCH) // _MICROSECOND
    return since + offset if sign == "-" else since - offset


def time_now() -> str:
    """The time, in UTC and to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
