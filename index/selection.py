"""The k-th largest of some values, for compiled loops.

Numba's own `np.partition` takes four seconds to compile, as it can do more.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from index.compiled import compiled

Array = npt.NDArray[Any]


@compiled(nogil=True)
def kth_largest(values: Array, k: int) -> Any:
    """The k-th largest of N values of any one type, 1 ≤ k ≤ N, none of which is NaN; they stay as they are.

    Hoare's FIND (1961), with the median of three values as what the others are compared with.
    """
    rest = values.copy()
    wanted, low, high = len(rest) - k, np.int64(0), np.int64(len(rest) - 1)
    while low < high:
        first, middle, last = rest[low], rest[(low + high) // 2], rest[high]
        pivot = max(min(first, middle), min(max(first, middle), last))
        left, right = low, high
        while left <= right:
            while rest[left] < pivot:
                left += 1
            while rest[right] > pivot:
                right -= 1
            if left <= right:
                rest[left], rest[right] = rest[right], rest[left]
                left += 1
                right -= 1
        if wanted <= right:
            high = right
        elif wanted >= left:
            low = left
        else:
            break
    return rest[wanted]
