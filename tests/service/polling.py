"""How tests wait for what another thread does."""

from __future__ import annotations

import asyncio

# Who looks again at once keeps the interpreter from what it waits for.
REST_SECONDS = 0.002


async def pause() -> None:
    """Rests between two looks."""
    await asyncio.sleep(REST_SECONDS)
