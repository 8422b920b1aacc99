"""What a server does again and again."""

from __future__ import annotations

import asyncio

import pytest

from tercet.service.load.repeating import for_ever


async def test_a_look_that_fails_is_logged_and_the_next_one_comes(caplog: pytest.LogCaptureFixture) -> None:
    looks = 0
    second = asyncio.Event()

    async def look() -> None:
        nonlocal looks
        looks += 1
        if looks == 1:
            raise RuntimeError("the disk is gone")
        second.set()

    looking = asyncio.create_task(for_ever("a look at the disk", look, 0.001))
    async with asyncio.timeout(20):
        await second.wait()
    looking.cancel()
    (record,) = caplog.records
    assert record.getMessage() == "a look at the disk failed; the next is in 0.001 s"
    assert record.exc_info is not None
    assert str(record.exc_info[1]) == "the disk is gone"
