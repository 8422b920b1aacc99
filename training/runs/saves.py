"""When a run saves its state: every so many steps or minutes, at the end, and when a signal stops it."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import numpy as np

from tercet.training.distributed import Ranks, gather_array
from tercet.training.settings.run import RunSettings

StopRequested = Callable[[], bool]
SIGNALS = (signal.SIGINT, signal.SIGTERM)


class SaveTimes:
    """Decides after each step whether to save. `stopping`: whether the run ends after that."""

    def __init__(self, settings: RunSettings, ranks: Ranks, stop_requested: StopRequested) -> None:
        """stop_requested: whether a signal came to this process."""
        self._steps = settings.save_steps
        self._seconds = 60 * settings.save_minutes
        self._ranks = ranks
        self._stop_requested = stop_requested
        self._saved_at = time.monotonic()
        self.stopping = False

    def due(self, step: int, *, last: bool) -> bool:
        """Whether the state after this step is saved. What one process wants happens in all of them."""
        late = time.monotonic() - self._saved_at >= self._seconds
        wishes = gather_array(np.array([[self._stop_requested(), late]]), self._ranks)
        self.stopping = bool(wishes[:, 0].any()) and not last
        due = last or step % self._steps == 0 or bool(wishes.any())
        if due:
            self._saved_at = time.monotonic()
        return due


@contextmanager
def stop_requests() -> Iterator[StopRequested]:
    """Makes SIGINT and SIGTERM requests to stop after the step in work; yields whether one came.

    A second signal acts as if this were not here, for who does not want to wait. Outside of the main thread,
    which alone may handle signals, none is a request.
    """
    came = False

    def request(_signal: int, _frame: FrameType | None) -> None:
        nonlocal came
        came = True
        restore()

    def restore() -> None:
        for number, handler in former.items():
            signal.signal(number, handler)

    in_main = threading.current_thread() is threading.main_thread()
    former = {number: signal.signal(number, request) for number in SIGNALS} if in_main else {}
    try:
        yield lambda: came
    finally:
        restore()
