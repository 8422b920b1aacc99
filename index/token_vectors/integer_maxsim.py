"""Late interaction with vectors stored as bytes, first nearly, then exactly.

A document's tokens go through one tile, eight at a time: copied, or put together from their codes, in which
case they have length 1. Nothing larger is made of them, and integer sums have no order, so that equal
documents get equal scores wherever they lie.

Letters: N query tokens, G groups of them, K texts, S values of a token in the tile, B bytes of a code, M
centroids.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from index.compiled import compiled
from index.instructions import LANES, OFFSET
from index.token_vectors.integer_products import (
    TILE,
    raise_best,
    raise_best_and_mark,
    square_sums,
)
from index.token_vectors.texts import bring_codes_near, tokens_of_text

Array = npt.NDArray[Any]

# What a score in float32 may be off, relative to the vectors' lengths, beside the query's own rounding.
ROUNDING = 1e-6
HIGHEST = np.float32(3.4028234e38)
LOWEST = -HIGHEST


@compiled(nogil=True)
def _copied(tile: Array, token: int, codes: Array, position: int) -> None:
    for place in range(codes.shape[1]):
        tile[token, place] = codes[position, place] ^ np.uint8(OFFSET)


@compiled(nogil=True)
def _assembled(words: Array, token: int, codes: Array, position: int, centroid: Array, tables: Array) -> None:
    """A centroid's values plus those of each code, several in a word: no sum carries from one to the next."""
    for place in range(codes.shape[1]):
        words[token, place] = centroid[place] + tables[place, codes[position, place]]


@compiled(nogil=True, error_model="numpy")  # no test before each division
def _fill(work: Any, text: Any, first: int, end: int) -> float:
    """Puts tokens of a text from `first` on into the tile, and where there are fewer than 8 the last before
    `end` again.

    Writes what their values are to be multiplied by, and returns the length of the longest vector.
    """
    tile, words, squares, scales = work
    codes, code_scales, assigned, centroids, tables = text
    for token in range(TILE):
        position = min(first + token, end - 1)
        if len(code_scales) > 0:
            _copied(tile, token, codes, position)
        else:
            _assembled(words, token, codes, position, centroids[assigned[position]], tables)
    square_sums(tile, tile.shape[1], squares)
    if len(code_scales) == 0:
        for token in range(TILE):  # a vector of zeros has the product 0, whatever its scale
            scales[token] = np.float32(1) / np.sqrt(np.float32(max(squares[token], np.int32(1))))
        return 1.0
    longest = np.float32(0)
    for token in range(TILE):
        scales[token] = code_scales[min(first + token, end - 1)]
        longest = max(longest, np.sqrt(np.float32(squares[token])) * scales[token])
    return np.float64(longest)


@compiled(nogil=True)
def _work_space(stored: Any, values: int) -> Any:
    """A tile uint8[8, S], the same in words, its tokens' squared lengths int32[8] and scales float32[8]."""
    tile, words = np.full((TILE, values), OFFSET, np.uint8), stored[2].dtype
    return tile, tile.view(words), np.empty(TILE, np.int32), np.empty(TILE, np.float32)


@compiled(nogil=True)
def _best_of_text(work: Any, text: Any, query: Any, best: Array) -> float:
    """Writes best float32[G, 16], in units of the query's scales; returns the longest vector's length."""
    packed, sums = query[0], query[1]
    tile, scales = work[0], work[3]
    longest, end = 0.0, len(text[0])
    best[:] = LOWEST
    for first in range(0, end, TILE):
        longest = max(longest, _fill(work, text, first, end))
        for group in range(len(packed)):
            raise_best(packed, group, tile, tile.shape[1], sums, scales, best)
    return longest


@compiled(nogil=True, fastmath={"reassoc"})
def _square_length(vector: Array) -> float:
    total = 0.0
    for value in vector:
        total += np.float64(value) * np.float64(value)
    return total


@compiled(nogil=True)
def near_maxsim(stored: Any, texts: Any, query: Any) -> tuple[Array, Array]:
    """Late interaction float64[K] of texts with the query as bytes.

    stored, texts: `StoredTexts.arguments`; query: `IntegerQuery.arguments`. Returns how far each score may be
    from the exact one, float64[K], too. 0 for a text without tokens.
    """
    packed, _, query_scales, errors, vectors = query
    work, count = _work_space(stored, vectors.shape[1]), len(texts[0])
    best = np.empty((len(packed), LANES), np.float32)
    scores, off = np.zeros(count), np.zeros(count)
    error, squares = 0.0, 0.0
    for token in range(len(vectors)):
        error += errors[token] / len(vectors)
        squares += _square_length(vectors[token]) / len(vectors)
    error += ROUNDING * np.sqrt(squares)
    for number in range(count):
        if number + 1 < count:  # the time that one text takes is enough for the next one's codes
            bring_codes_near(stored, texts, number + 1)
        text = tokens_of_text(stored, texts, number)
        if len(text[0]) > 0:
            longest = _best_of_text(work, text, query, best)
            total = 0.0
            for group in range(len(packed)):
                for lane in range(LANES):
                    total += np.float64(best[group, lane]) * np.float64(query_scales[group, lane])
            scores[number] = total / len(vectors)
            off[number] = error * longest
    return scores, off


@compiled(nogil=True, fastmath={"reassoc"})
def _product(vector: Array, values: Array) -> float:
    total = 0.0
    for place in range(len(vector)):
        total += vector[place] * np.float64(np.int32(values[place]) - np.int32(OFFSET))
    return total


@compiled(nogil=True)
def _margins(query: Any) -> Array:
    """How far a product may be below the best and yet be it exactly, for vectors of length 1, in the units of
    `raise_best`: float32[G, 16]. Marks of lanes without a query token say nothing, whatever their margin is.
    """
    packed, _, query_scales, errors, vectors = query
    margins = np.zeros((len(packed), LANES), np.float32)
    for token in range(len(vectors)):
        group, lane = token // LANES, token % LANES
        off = errors[token] + ROUNDING * np.sqrt(_square_length(vectors[token]))
        scale = np.float64(query_scales[group, lane])  # 0 for a vector of zeros, whose products all are 0
        margins[group, lane] = min(2 * off / scale, np.float64(HIGHEST)) if scale > 0 else 0.0
    return margins


@compiled(nogil=True)
def exact_maxsim(stored: Any, texts: Any, query: Any) -> Array:
    """As `near_maxsim`, but of the query itself and in float64.

    Each query token meets those tokens alone that may be its best: no other comes as near to the best so far
    as twice the error of its bytes.
    """
    packed, sums, _, _, vectors = query
    work = _work_space(stored, vectors.shape[1])
    tile, scales, marks = work[0], work[3], np.empty(TILE, np.uint16)
    best, margins = np.empty((len(packed), LANES), np.float32), _margins(query)
    exact, scores = np.empty(len(vectors)), np.zeros(len(texts[0]))
    for number in range(len(scores)):
        text = tokens_of_text(stored, texts, number)
        end, longest = len(text[0]), np.float32(0)
        if end == 0:
            continue
        best[:], exact[:] = LOWEST, -np.inf
        for first in range(0, end, TILE):
            longest = max(longest, np.float32(_fill(work, text, first, end)))
            for group in range(len(packed)):
                raise_best_and_mark(
                    packed, group, tile, tile.shape[1], sums, scales, best, margins, longest, marks
                )
                lanes = min(LANES, len(vectors) - group * LANES)
                for row in range(min(TILE, end - first)):
                    token, near = group * LANES, marks[row] & ((1 << lanes) - 1)
                    while near:
                        if near & 1:
                            value = _product(vectors[token], tile[row]) * np.float64(scales[row])
                            exact[token] = max(exact[token], value)
                        token, near = token + 1, near >> 1
        total = 0.0
        for value in exact:
            total += value
        scores[number] = total / len(exact)
    return scores
