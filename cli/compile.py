"""`tercet compile`: what a first search, build and write would otherwise wait for."""

from __future__ import annotations

import time

from cli.output import console


def compile_loops() -> None:
    """Compile what searches, builds and writes need for this processor, so that the first does not wait.

    It is kept beside the packages, or in the folder that NUMBA_CACHE_DIR names, for all later commands.
    """
    from index.warm_up import warm_up

    started = time.monotonic()
    warm_up()
    console().print(f"compiled in {time.monotonic() - started:.0f} s")
