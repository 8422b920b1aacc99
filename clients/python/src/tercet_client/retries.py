"""When a request is sent again."""

from __future__ import annotations

import httpx

BUSY = (429, 503)
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0  # seconds, where the server names none


def pause_before(attempt: int, answer: httpx.Response | None) -> float | None:
    """Seconds to wait before attempt number `attempt`, 1 for the first repeat; None for no repeat.

    answer: of the attempt before; None where the connection failed.
    """
    if answer is not None and answer.status_code not in BUSY:
        return None
    named = None if answer is None else answer.headers.get("Retry-After")
    if named is not None and named.strip().isdecimal():
        return float(named)
    return min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** (attempt - 1))
