"""Arenas of the C library, in a process of its own: they are never fewer again."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from tercet.models.cores import usable_cores
from tercet.service.load.arenas import FEWEST

THREADS = 40
# Threads that all hold memory at a time, and what the C library says of its arenas then.
CODE = f"""
import ctypes, threading
from tercet.service.load.arenas import share_arenas

share_arenas()
here = threading.Barrier({THREADS} + 1)

def hold():
    held = ctypes.create_string_buffer(100_000)
    here.wait()
    here.wait()

threads = [threading.Thread(target=hold) for _ in range({THREADS})]
for thread in threads:
    thread.start()
here.wait()
library = ctypes.CDLL(None)
library.fopen.restype = ctypes.c_void_p
file = ctypes.c_void_p(library.fopen(b"/dev/stdout", b"w"))
library.malloc_info(0, file)
library.fclose(file)
here.wait()
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="arenas are glibc's")
@pytest.mark.parametrize(
    ("environment", "most"), [({}, max(FEWEST, usable_cores())), ({"MALLOC_ARENA_MAX": "5"}, 5)]
)
def test_threads_share_arenas(environment: dict[str, str], most: int, repository: Path) -> None:
    inherited = {name: value for name, value in os.environ.items() if name != "MALLOC_ARENA_MAX"}
    done = subprocess.run(
        [sys.executable, "-c", CODE],
        cwd=repository,
        env={**inherited, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    assert 1 <= done.stdout.count("<heap nr=") <= most
