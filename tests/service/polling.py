"""How tests wait for what another thread does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

# Who looks again at once keeps the interpreter from what it waits for.
REST_SECONDS = 0.002


async def pause() -> None:
    """Rests between two looks."""
    await asyncio.sleep(REST_SECONDS)


def turn_of_the_loop() -> Callable[[], None]:
    """What a thread may call to wait until all that runs on the event loop now has gone to wait itself."""
    return asyncio.run_coroutine_threadsafe(asyncio.sleep(0), asyncio.get_running_loop()).result
