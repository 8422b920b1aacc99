"""The `tercet` command with two clocks: processor seconds of the encoder's passes and of late interaction.

usage: python timed_command.py FILE COMMAND …

FILE holds two float64, which grow as the command works.
"""

import os
import struct
import sys
import time
from collections.abc import Callable
from typing import Any

CLOCKS = struct.Struct("2d")  # passes, late interaction


def main() -> None:
    # Before NumPy is loaded, which is earlier here than under the plain command.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from tercet.cli.main import main as run_command
    from tercet.index.search import late_interaction
    from tercet.models.native.native_graph import NativeGraph

    file = os.open(sys.argv[1], os.O_RDWR)
    spent = [0.0, 0.0]

    def timed(owner: Any, name: str, clock: int) -> None:
        call: Callable[..., Any] = getattr(owner, name)

        def wrapped(*arguments: Any, **options: Any) -> Any:
            started = time.thread_time()
            try:
                return call(*arguments, **options)
            finally:
                spent[clock] += time.thread_time() - started
                os.pwrite(file, CLOCKS.pack(*spent), 0)

        setattr(owner, name, wrapped)

    timed(NativeGraph, "forward", 0)
    timed(late_interaction, "packed_maxsim", 1)
    sys.argv = ["tercet", *sys.argv[2:]]
    run_command()


if __name__ == "__main__":
    main()
