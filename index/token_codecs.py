"""How token vectors are stored, by name."""

from __future__ import annotations

from typing import Literal

TokenCodec = Literal["float16", "int8", "residual4", "residual2", "residual1", "sign", "none"]
"""`residual4`, `2` and `1` keep so many bits of each value's distance to a centroid, by a codebook that is
learned; `sign` keeps the sign of each value, by one that is the same for all vectors.
"""

RESIDUAL_BITS: dict[TokenCodec, int] = {"residual1": 1, "residual2": 2, "residual4": 4}
CODED: frozenset[TokenCodec] = frozenset((*RESIDUAL_BITS, "sign"))  # which have a codebook
LARGEST_POOLING = 4  # tokens that may share a vector
