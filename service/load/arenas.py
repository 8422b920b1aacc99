"""How many arenas of memory the C library keeps for the threads of this process, and what is not in them."""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress

from tercet.models.cores import usable_cores

M_ARENA_MAX = -8  # of glibc's malloc.h
M_MMAP_THRESHOLD = -3
FEWEST = 2
MAPPED_BYTES = 2**18


def share_arenas() -> None:
    """Lets threads share an arena for each core, unless MALLOC_ARENA_MAX says how many; for glibc alone.

    It makes eight for each core, and each keeps in pieces what the largest bodies took that its threads read.
    """
    if "MALLOC_ARENA_MAX" not in os.environ:
        with suppress(OSError, AttributeError):  # no glibc
            ctypes.CDLL(None).mallopt(M_ARENA_MAX, max(FEWEST, usable_cores()))


def give_back_large() -> None:
    """Has what is larger than MAPPED_BYTES go back to the system as soon as it is freed, unless
    MALLOC_MMAP_THRESHOLD_ says how large; for glibc alone.

    By itself glibc keeps in its arenas what is as large as anything that was freed before, up to 32 MiB: a
    process that encodes in threads, one block after the other, grew by 40 MB a block.
    """
    if "MALLOC_MMAP_THRESHOLD_" not in os.environ:
        with suppress(OSError, AttributeError):  # no glibc
            ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, MAPPED_BYTES)
