"""How processor times of searches spread, as `benchmarks/service_times.py` measured it.

Evenly spaced quantiles, from the least to the largest, of which the mean is 1.
"""

BY_QUERY = (
    0.796,
    0.843,
    0.869,
    0.887,
    0.901,
    0.921,
    0.933,
    0.95,
    0.975,
    0.987,
    1.004,
    1.018,
    1.029,
    1.041,
    1.059,
    1.078,
    1.095,
    1.11,
    1.126,
    1.165,
    1.219,
)
"""Of queries, each by the median of its runs."""

BY_RUN = (
    0.762,
    0.838,
    0.857,
    0.875,
    0.896,
    0.912,
    0.927,
    0.94,
    0.953,
    0.965,
    0.972,
    0.979,
    0.992,
    1.006,
    1.021,
    1.039,
    1.061,
    1.087,
    1.13,
    1.227,
    1.884,
)
"""Of single runs beside the median of their query."""
