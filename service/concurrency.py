"""Several awaitables at once, all or none."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

Result = TypeVar("Result")


async def all_of(work: Iterable[Coroutine[Any, Any, Result]]) -> list[Result]:
    """Results in order. The first failure cancels the rest and is raised as it is."""
    tasks = [asyncio.ensure_future(coroutine) for coroutine in work]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
