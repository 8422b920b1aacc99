"""The formula of BM25 and its constants.

    s_bm25 = SCALE · sum over terms t of n_q(t) idf(t) w(t)
    w(t)   = tf / (tf + k1 (1 - b + b length / mean length))
    idf(t) = ln(1 + (N - n(t) + 0.5) / (n(t) + 0.5))

n_q(t) and tf count the term in query and document, length counts a document's terms; n(t) of N documents have
the term (Robertson and Zaragoza 2009; the idf, and no factor k1 + 1, as in Lucene). N, n(t) and the mean
length are those of all segments together.
"""

from __future__ import annotations

import numpy as np

from tercet.models.representations import Float32, Float64

K1 = 1.2
B = 0.75
# With it a weight of 1 suits the other scores; docs/tuning.md has what other constants gave.
SCALE = 0.05
BASE = K1 * (1 - B)
_ROUNDING = 1e-6  # more than a weight changes where it is stored as float32


def mean_length(total: int, documents: int) -> float:
    """Terms a document, of `total` terms; 1 where there are none."""
    return total / documents if total else 1.0


def slope(mean: float) -> float:
    """What each term of a document adds to what its frequencies are compared with; mean: the mean length."""
    return K1 * B / mean


def ratios(longest: int, own_mean: float, mean: float) -> tuple[float, float]:
    """The least and the most that a segment's weights are of those that its index was built with.

    longest: terms of its longest document; own_mean: the mean length that the index was built with; mean:
    that of all segments. The ratio of two weights is
    (tf + base + own slope · length) / (tf + base + slope · length): near 1 for short documents, and farthest
    from it where tf is 1 and the length the longest.
    """
    farthest = (1 + BASE + slope(own_mean) * longest) / (1 + BASE + slope(mean) * longest)
    return min(1.0, farthest) * (1 - _ROUNDING), max(1.0, farthest) * (1 + _ROUNDING)


def weights(frequencies: Float32, length: int, mean: float) -> Float64:
    """w(t) of terms with frequencies float32[T] in a document, with the mean length of all segments."""
    counted = frequencies.astype(np.float64)
    shares: Float64 = counted / (counted + (BASE + slope(mean) * length))
    return shares
