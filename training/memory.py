"""Memory that a run has freed, and that the C library keeps."""

from __future__ import annotations

import ctypes
from functools import cache

TRIM_STEPS = 25


def give_back_freed_memory() -> bool:
    """Returns freed memory to the system; False where the C library cannot, which only glibc can.

    Batches differ in shape, so that glibc finds no place for the next one between the fragments of the last
    ones, and a run would grow with every step.
    """
    trim = _malloc_trim()
    if trim is None:
        return False
    trim(0)
    return True


@cache
def _malloc_trim() -> ctypes._FuncPointer | None:
    try:
        trim: ctypes._FuncPointer = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # another C library, or none by this way
        return None
    trim.argtypes, trim.restype = [ctypes.c_size_t], ctypes.c_int
    return trim
