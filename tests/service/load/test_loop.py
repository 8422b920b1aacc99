"""How late the event loop is."""

import asyncio
import time

import pytest

from service.exceptions import OverloadedError
from service.load.admission import Admission
from service.load.deadlines import NO_DEADLINE
from service.load.loop import BEAT_SECONDS, MEMORY_SECONDS, STEPS, LoopDelay


async def test_a_loop_that_is_held_shows_at_once_and_is_forgotten_again() -> None:
    late: list[float] = []
    delay = LoopDelay(late.append)
    assert delay.seconds == 0
    delay.start()
    try:
        await asyncio.sleep(3 * BEAT_SECONDS)
        time.sleep(0.3)  # noqa: ASYNC251 - what must not happen
        assert 0.2 < delay.seconds < 0.4  # before the next beat
        assert delay.wait_seconds == pytest.approx(STEPS * delay.seconds, rel=0.1)
        await asyncio.sleep(2 * BEAT_SECONDS)
        assert max(late) > 0.2
        assert delay.seconds > 0.05  # what was held may be held again
        await asyncio.sleep(5 * MEMORY_SECONDS)
        assert delay.seconds < 0.1
    finally:
        delay.stop()
    assert delay.seconds == 0


async def test_the_delay_is_part_of_every_prediction() -> None:
    delay = LoopDelay()
    admission = Admission(1.0, delay)
    delay.start()
    try:
        admission.require(0.9, NO_DEADLINE)
        time.sleep(0.1)  # noqa: ASYNC251 - what must not happen
        with pytest.raises(OverloadedError, match=r"would wait 1\.[3-9] s; 1\.0 s is this server's limit"):
            admission.require(0.9, NO_DEADLINE)
    finally:
        delay.stop()
