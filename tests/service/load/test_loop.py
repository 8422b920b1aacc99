"""How late the event loop is."""

import asyncio
import time

import pytest

from tercet.service.exceptions import OverloadedError
from tercet.service.load.admission import Admission
from tercet.service.load.deadlines import NO_DEADLINE
from tercet.service.load.loop import BEAT_SECONDS, STEPS, USUAL_SECONDS, LoopDelay
from tests.service.polling import pause


async def test_a_loop_that_is_held_shows_at_once_and_is_forgotten_again() -> None:
    beats: list[tuple[float, float]] = []  # how late each was, and the mean from then on
    delay = LoopDelay(lambda late: beats.append((late, delay.mean_seconds)))
    assert delay.seconds == 0
    delay.start()
    try:
        await asyncio.sleep(3 * BEAT_SECONDS)
        before, former = delay.mean_seconds, len(beats)
        time.sleep(0.3)  # noqa: ASYNC251 - what must not happen
        assert delay.seconds > 0.2  # before the next beat
        assert delay.mean_seconds == before
        while len(beats) == former:
            await pause()
        late, held = beats[former]
        assert late > 0.2
        # One stop is no overload, but what was held may be held again: from 0 it is a quarter of 0.2 s.
        assert held == pytest.approx(before + 0.25 * (0.2 - before))
        while delay.mean_seconds >= held:
            await pause()
    finally:
        delay.stop()
    assert delay.seconds == delay.mean_seconds == 0


def test_the_delay_is_part_of_every_prediction() -> None:
    delay = LoopDelay()
    admission = Admission(2.0, delay)
    admission.require(0.9, NO_DEADLINE)
    delay.mean_seconds = USUAL_SECONDS
    assert delay.wait_seconds == 0
    delay.mean_seconds = 0.1
    assert delay.wait_seconds == STEPS * 0.1
    admission.require(0.0, NO_DEADLINE)  # nobody is ahead
    with pytest.raises(OverloadedError, match=r"would wait 1\.1 s; 1\.0 s is this server's limit"):
        admission.require(0.9, NO_DEADLINE)
