"""Memory between pages that nobody may touch: a step past an array's end, or before its start, is a fault.

So it shows in an ordinary build, at its speed.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from typing import Any

import numpy as np
import numpy.typing as npt

PAGE = mmap.PAGESIZE
NO_ACCESS = 0  # PROT_NONE of mprotect(2)
UInt8 = npt.NDArray[np.uint8]

_libc = ctypes.CDLL(None, use_errno=True)


class Rooms:
    """Room for arrays by number, each between such pages; what a number held before is written over."""

    def __init__(self) -> None:
        self._rooms: dict[int, UInt8] = {}

    def hold(self, number: int, array: npt.NDArray[Any], *, at_end: bool) -> npt.NDArray[Any]:
        """A copy of an array: its last byte before the page behind it, or its first after the one before."""
        room = self._rooms.get(number)
        if room is None or len(room) < array.nbytes:
            room = self._rooms[number] = _room(array.nbytes)
        start = len(room) - array.nbytes if at_end else 0
        held = room[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
        held[...] = array
        return held


def _room(size: int) -> UInt8:
    """So many bytes or more, up to whole pages, with a page on either side."""
    pages = max(1, -(-size // PAGE))
    memory = np.frombuffer(mmap.mmap(-1, (pages + 2) * PAGE), np.uint8)
    for page in (0, pages + 1):
        if _libc.mprotect(ctypes.c_void_p(memory.ctypes.data + page * PAGE), PAGE, NO_ACCESS):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return memory[PAGE : (pages + 1) * PAGE]
