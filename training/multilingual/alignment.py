"""Which English tokens a token of another language stands for, by IBM's first model.

Letters in shapes: P pairs, F tokens of the language, E English tokens,
M pairs of tokens that meet in some pair.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from index.compiled import compiled

Ints = npt.NDArray[np.int32]
Offsets = npt.NDArray[np.int64]


def expected_counts(
    source: tuple[Ints, Offsets],
    target: tuple[Ints, Offsets],
    shape: tuple[int, int],
    iterations: int,
) -> Any:
    """How often each token of a language produced each English token, expected; csr float32[F, E].

    Each English token of a pair is taken to come from one token of the other text, with a probability
    t(e|f) that all pairs together tell, found by expectation maximization (Brown et al. 1993, model 1).
    source, target: token ids and offsets int64[P + 1] of both texts; token id 0 of the source is that of
    no word at all, which every text has. shape: F and E.
    """
    keys = np.unique(np.concatenate(list(meeting_keys(source, target, shape[1]))))
    rows = (keys // shape[1]).astype(np.int32)
    columns = (keys % shape[1]).astype(np.int32)
    starts = np.searchsorted(rows, np.arange(shape[0] + 1)).astype(np.int64)
    probabilities = np.ones(len(keys))
    counts = probabilities
    for _ in range(iterations):
        counts = expectation(*source, *target, starts, columns, probabilities)
        totals = np.bincount(rows, counts, minlength=shape[0])
        probabilities = counts / np.maximum(totals[rows], 1e-12)
    return sparse.csr_matrix((counts.astype(np.float32), columns, starts), shape=shape)


def meeting_keys(
    source: tuple[Ints, Offsets], target: tuple[Ints, Offsets], width: int, chunk: int = 4000
) -> Any:
    """Distinct numbers f · width + e of the tokens that meet, for `chunk` pairs at a time."""
    for start in range(0, len(source[1]) - 1, chunk):
        stop = min(start + chunk, len(source[1]) - 1)
        yield np.unique(meeting(*source, *target, start, stop, width))


@compiled()
def meeting(
    source: Ints, ends: Offsets, target: Ints, stops: Offsets, start: int, stop: int, width: int
) -> npt.NDArray[np.int64]:
    total = 0
    for pair in range(start, stop):
        total += (ends[pair + 1] - ends[pair]) * (stops[pair + 1] - stops[pair])
    keys = np.empty(total, np.int64)
    at = 0
    for pair in range(start, stop):
        for i in range(ends[pair], ends[pair + 1]):
            for j in range(stops[pair], stops[pair + 1]):
                keys[at] = np.int64(source[i]) * width + target[j]
                at += 1
    return keys


@compiled()
def expectation(
    source: Ints,
    ends: Offsets,
    target: Ints,
    stops: Offsets,
    starts: Offsets,
    columns: Ints,
    probabilities: npt.NDArray[np.float64],
) -> npt.NDArray[np.float64]:
    """Expected counts float64[M] under the probabilities float64[M] of the pass before."""
    counts = np.zeros(len(probabilities))
    places = np.empty(1024, np.int64)
    for pair in range(len(ends) - 1):
        length = min(ends[pair + 1] - ends[pair], 1024)
        for j in range(stops[pair], stops[pair + 1]):
            total = 0.0
            for i in range(length):
                token = source[ends[pair] + i]
                low = starts[token]
                place = low + np.searchsorted(columns[low : starts[token + 1]], target[j])
                places[i] = place
                total += probabilities[place]
            for i in range(length):
                counts[places[i]] += probabilities[places[i]] / total
    return counts
