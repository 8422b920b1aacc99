"""Compiled loops over term statistics; compiled and cached like those of `index/sparse/kernels.py`."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from index.compiled import compiled

Array = npt.NDArray[Any]


@compiled(nogil=True)
def add_statistics(
    terms: Array, frequencies: Array, masses: Array, total_frequencies: Array, total_masses: Array
) -> None:
    """Adds a segment's statistics to those of all V terms: several times as fast as by NumPy's fancy indexes.

    terms: int32[X], below V; frequencies: int32[X]; masses: int64[X]; totals: int64[V], updated.
    """
    for place in range(len(terms)):
        term = terms[place]
        total_frequencies[term] += np.int64(frequencies[place])
        total_masses[term] += masses[place]
