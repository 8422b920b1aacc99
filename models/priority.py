"""The claim of one thread to the processor, beside those of the same process."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress


def yield_to_main_thread(niceness: int) -> None:
    """Lowers the priority of the calling thread, and of those that it starts, so far below the main thread's.

    niceness: in the steps of nice(2). Elsewhere than on Linux, threads have no priority of their own.
    """
    if sys.platform == "linux":
        with suppress(OSError):  # a sandbox may forbid it
            own = os.getpriority(os.PRIO_PROCESS, os.getpid())  # the main thread's, whose number it has
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), own + niceness)
