import os
import subprocess
import sys
from pathlib import Path
from signal import SIGSEGV

import numpy as np
import pytest

from tests.index.native.guarded import Rooms

ROOT = Path(__file__).resolve().parents[3]
STEP = """
import ctypes
import numpy as np
from tests.index.native.guarded import Rooms
held = Rooms().hold(0, np.arange(3), at_end={at_end})
ctypes.memset(held.ctypes.data + {place}, 0, 1)
"""


def test_arrays_are_held_one_after_the_other_in_the_same_memory() -> None:
    rooms = Rooms()
    for array in (np.arange(5), np.ones((2, 3), np.float16), np.empty((0, 4)), np.arange(10_000)):
        for at_end in (True, False):
            held = rooms.hold(0, array, at_end=at_end)
            assert held.dtype == array.dtype
            assert np.array_equal(held, array)


@pytest.mark.parametrize(
    ("at_end", "place", "faults"), [(True, 24, True), (True, 23, False), (False, -1, True), (False, 0, False)]
)
def test_a_step_outside_ends_the_process(at_end: bool, place: int, faults: bool) -> None:
    code = STEP.format(at_end=at_end, place=place)
    # Sanitizers would end the process in their own way.
    options = f"{os.environ.get('ASAN_OPTIONS', '')}:handle_segv=0"
    environment = {**os.environ, "ASAN_OPTIONS": options}
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, check=False)
    assert done.returncode == (-SIGSEGV if faults else 0)
