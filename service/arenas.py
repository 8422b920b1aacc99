"""How many arenas of memory the C library keeps for the threads of this process."""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress

from models.cores import usable_cores

M_ARENA_MAX = -8  # of glibc's malloc.h
FEWEST = 2


def share_arenas() -> None:
    """Lets threads share an arena for each core, unless MALLOC_ARENA_MAX says how many; for glibc alone.

    It makes eight for each core, and each keeps in pieces what the largest bodies took that its threads read.
    """
    if "MALLOC_ARENA_MAX" not in os.environ:
        with suppress(OSError, AttributeError):  # no glibc
            ctypes.CDLL(None).mallopt(M_ARENA_MAX, max(FEWEST, usable_cores()))
