"""What SQLite asks of its files, seen and refused without a tracer: a VFS in front of its own.

SQLite reaches files through a table of functions that anybody may replace (sqlite.org/vfs.html). Ours passes
every call on, and tells of writes and forces before.
"""

from __future__ import annotations

import _sqlite3
import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import pytest

Call = Literal["write", "sync"]
OK, FULL, WRITE_FAILED, SYNC_FAILED = 0, 13, 10 | 3 << 8, 10 | 4 << 8  # SQLite's codes
DONE = -1  # none of them: the call is not carried out, and SQLite believes that it was

_OPEN = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p
)
_WRITE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int64)
_SYNC = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int)


class _Methods(ctypes.Structure):
    _fields_ = (
        ("version", ctypes.c_int),
        ("close", ctypes.c_void_p),
        ("read", ctypes.c_void_p),
        ("write", ctypes.c_void_p),
        ("truncate", ctypes.c_void_p),
        ("sync", ctypes.c_void_p),
        ("others", ctypes.c_void_p * 13),
    )


class _File(ctypes.Structure):
    _fields_ = (("methods", ctypes.POINTER(_Methods)),)


class _Vfs(ctypes.Structure):
    _fields_ = (
        ("version", ctypes.c_int),
        ("file_bytes", ctypes.c_int),
        ("path_bytes", ctypes.c_int),
        ("following", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("data", ctypes.c_void_p),
        ("open", ctypes.c_void_p),
        ("others", ctypes.c_void_p * 15),
    )


_KEPT: list[Any] = []  # what SQLite holds pointers to, for as long as the process


@contextmanager
def sqlite_calls(told: Callable[[Call, Path, range], int]) -> Iterator[None]:
    """Connections that are opened meanwhile say what they are about to write and force.

    told: of the call, its file and the bytes that are written; what it returns is SQLite's code for it, OK to
    have it carried out, or DONE. Skips the test where the interpreter hides SQLite's functions.
    """
    library = ctypes.CDLL(getattr(_sqlite3, "__file__", None))
    if not hasattr(library, "sqlite3_vfs_find"):
        pytest.skip("needs SQLite as a library of its own")
    library.sqlite3_vfs_find.restype = ctypes.POINTER(_Vfs)
    system = library.sqlite3_vfs_find(None)
    real_open = _OPEN(system.contents.open)
    ours = _Vfs.from_buffer_copy(system.contents)
    ours.name = b"told"
    paths: dict[int, Path] = {}  # by file
    tables: dict[int, _Methods] = {}  # by the system's

    def opened(vfs: int, name: int | None, file: int, flags: int, result: int | None) -> int:
        code: int = real_open(vfs, name, file, flags, result)
        found = ctypes.cast(file, ctypes.POINTER(_File)).contents
        if code == OK and name and found.methods:
            paths[file] = Path(ctypes.string_at(name).decode())
            place = ctypes.addressof(found.methods.contents)
            if place not in tables:
                tables[place] = telling(found.methods.contents)
            found.methods = ctypes.pointer(tables[place])
        return code

    def answered(code: int, carry_out: Callable[[], int]) -> int:
        return OK if code == DONE else code or carry_out()

    def telling(system: _Methods) -> _Methods:
        write, sync = _WRITE(system.write), _SYNC(system.sync)
        table = _Methods.from_buffer_copy(system)

        def written(file: int, content: int, size: int, offset: int) -> int:
            code = told("write", paths[file], range(offset, offset + size))
            return answered(code, lambda: write(file, content, size, offset))

        def forced(file: int, flags: int) -> int:
            return answered(told("sync", paths[file], range(0)), lambda: sync(file, flags))

        callbacks = _WRITE(written), _SYNC(forced)
        table.write, table.sync = (ctypes.cast(each, ctypes.c_void_p) for each in callbacks)
        _KEPT.append((table, callbacks, write, sync))
        return table

    callback = _OPEN(opened)
    ours.open = ctypes.cast(callback, ctypes.c_void_p)
    _KEPT.append((ours, callback, real_open))
    library.sqlite3_vfs_register(ctypes.byref(ours), 1)
    try:
        yield
    finally:
        library.sqlite3_vfs_register(system, 1)
        library.sqlite3_vfs_unregister(ctypes.byref(ours))
