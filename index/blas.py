"""Matrix products on the thread that asks for them.

Those of a search are small and several searches run at a time, so a second thread of OpenBLAS only waits: it
doubled the processor time of a small search. How many threads OpenBLAS uses is one number of the whole
process, set while any search needs it and given back after the last.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import ContextDecorator
from functools import cached_property

from threadpoolctl import LibController, ThreadpoolController


class _OneThread(ContextDecorator):
    """A context, or decorator, that any number of threads may be in at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._former: list[int] = []

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._former = [library.get_num_threads() for library in self._libraries]
                self._set([1] * len(self._libraries))
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._set(self._former)

    def _set(self, numbers: Sequence[int]) -> None:
        for library, number in zip(self._libraries, numbers, strict=True):
            # Else only the thread that set the number first could set it again.
            library.clear_controlling_thread(force=True)
            library.set_num_threads(number)
            library.clear_controlling_thread(force=True)

    @cached_property
    def _libraries(self) -> list[LibController]:
        """Those with one pool for the process, looked up at the first use, when NumPy has loaded its own."""
        libraries = ThreadpoolController().select(internal_api="openblas").lib_controllers
        return [library for library in libraries if library.threading_layer == "pthreads"]


one_blas_thread = _OneThread()
"""Goes around what multiplies matrices for a search."""
