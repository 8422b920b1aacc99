"""A file's content as memory, without a descriptor.

The system keeps a map after its descriptor is closed. Python's own `mmap` holds a duplicate of it all the
same: a segment whose arrays are files of their own would hold a hundred.
"""

from __future__ import annotations

import ctypes
import os
import weakref
from functools import cache
from mmap import MAP_SHARED, PROT_READ
from pathlib import Path
from typing import Any

import numpy as np

from tercet.index.files.content import missing, open_file

_FAILED = ctypes.c_void_p(-1).value


def map_file(path: Path) -> memoryview:
    """A file's content, mapped read-only for as long as something refers to it.

    Raises DamagedIndexError where it is missing, and OSError, with ENOMEM where the process may have no more
    memory mapped.
    """
    try:
        with open_file(path) as file:
            size = os.fstat(file.fileno()).st_size
            if size == 0:  # which cannot be mapped
                return memoryview(b"")
            return np.asarray(_Map(file.fileno(), size, path)).data
    except FileNotFoundError as error:
        raise missing(path) from error


class _Map:
    """What an array over mapped memory holds on to. The map ends with it."""

    def __init__(self, descriptor: int, size: int, path: Path) -> None:
        library = libc()
        address = library.mmap(None, size, PROT_READ, MAP_SHARED, descriptor, 0)
        if address == _FAILED:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(path))
        ends = weakref.finalize(self, library.munmap, address, size)
        ends.atexit = False  # threads may still read, and the process's end ends all maps
        self.__array_interface__ = {"version": 3, "shape": (size,), "typestr": "|u1", "data": (address, True)}


@cache
def libc() -> Any:
    """The C library of this process."""
    library = ctypes.CDLL(None, use_errno=True)
    library.mmap.restype = ctypes.c_void_p
    library.mmap.argtypes = (
        ctypes.c_void_p,
        ctypes.c_size_t,
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_ssize_t,  # off_t, which is as wide wherever this runs
    )
    library.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
    library.mincore.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p)
    library.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    return library
