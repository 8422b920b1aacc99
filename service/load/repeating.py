"""Work that is done again and again, until it succeeds or for ever."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from tercet.models.errors import EncoderUnavailableError
from tercet.service.exceptions import OverloadedError

RETRY_SECONDS = 0.5  # between two attempts to reach an encoder elsewhere

Result = TypeVar("Result")

log = logging.getLogger("tercet")


async def for_ever(name: str, look: Callable[[], Awaitable[object]], seconds: float) -> None:
    """Looks again and again, so many seconds after each look; one that fails ends nothing and is logged."""
    while True:
        try:
            await look()
        except Exception:  # whatever it is: serving goes on, and the next look may succeed
            log.exception("%s failed; the next is in %g s", name, seconds)
        await asyncio.sleep(seconds)


async def patiently(work: Callable[[], Awaitable[Result]]) -> Result:
    """What the work gives once the encoder can be reached and has room; tells each reason to wait once."""
    logged = ""
    while True:
        try:
            return await work()
        except (EncoderUnavailableError, OverloadedError) as error:
            if logged != str(error):
                logged = str(error)
                log.warning("%s; trying again every %g s", logged, RETRY_SECONDS)
            await asyncio.sleep(RETRY_SECONDS)
