"""Stretches of equal values, such as candidates of one segment."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from tercet.models.representations import Int64


def runs(values: Int64) -> Iterator[tuple[int, slice]]:
    """Each stretch of equal values in int64[K]: the value, and where it lies."""
    edges = [0, *(np.flatnonzero(values[1:] != values[:-1]) + 1).tolist(), len(values)]
    for first, last in pairwise(edges):
        if first < last:
            yield int(values[first]), slice(first, last)
