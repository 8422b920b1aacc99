"""Freed memory goes back to the system, which glibc does not do by itself below a block in use."""

import os
import platform
import subprocess
import sys

import pytest

CHILD = """
import psutil
from tercet.training.memory import give_back_freed_memory

held = [bytearray(50_000) for _ in range(4000)]
last = bytearray(1000)
peak = psutil.Process().memory_info().rss
del held
kept = psutil.Process().memory_info().rss
assert give_back_freed_memory()
print(peak - kept, kept - psutil.Process().memory_info().rss)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc keeps freed memory this way")
def test_freed_memory_goes_back() -> None:
    environment = {"PYTHONPATH": os.environ["PYTHONPATH"], "MALLOC_TRIM_THRESHOLD_": str(1 << 40)}
    done = subprocess.run([sys.executable, "-c", CHILD], check=True, capture_output=True, env=environment)
    freed_by_itself, given_back = map(int, done.stdout.split())
    assert freed_by_itself < 20 << 20
    assert given_back > 150 << 20
