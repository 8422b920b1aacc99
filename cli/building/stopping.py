"""How a build is stopped: by a signal, or because standard input closed."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

STOP_SECONDS = 10.0


@contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """Lets SIGTERM end a build as Ctrl-C does: what was written is removed first.

    Yields whether one of them came. Python drops an exception that is raised while compiled code calls back,
    so the build asks as well.
    """
    came = False

    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        nonlocal came
        came = True
        raise KeyboardInterrupt

    former = {number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: came
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


def stop_when_stdin_closes() -> None:
    """Ends the process when standard input closes, which tells a job that its service is gone."""
    # Not through sys.stdin, whose lock this thread would still hold when the interpreter ends.
    while os.read(0, 1024):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(STOP_SECONDS)  # time to clean up, unless compiled code holds the main thread
    os._exit(130)
