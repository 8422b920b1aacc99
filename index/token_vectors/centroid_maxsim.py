"""Late interaction with the centroids of stored tokens alone, which reads 2 bytes a token.

All inner products of a query's tokens with centroids come first; each stored token then costs one row of
them (the centroid interaction of PLAID: Santhanam et al. 2022, section 4.2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from index.compiled import compiled
from index.files.arrays import frozen
from index.instructions import LANES
from index.token_vectors.codebook import Codebook
from index.token_vectors.integer_products import TILE, multiply
from index.token_vectors.integer_query import IntegerQuery
from index.token_vectors.texts import StoredTexts, centroids_of_text
from models.representations import Float64

Array = npt.NDArray[Any]

LARGEST = 2**15 - 1


@dataclass(frozen=True, slots=True)
class CentroidProducts:
    """Inner products of N query tokens with M centroids, about values x scales.

    values: int16[M, L], L the next multiple of 16 from N on; scales: float64[L], divided by N, and 0 behind
    the last token.
    """

    values: npt.NDArray[np.int16]
    scales: Float64

    @staticmethod
    def of(query: IntegerQuery, codebook: Codebook) -> CentroidProducts:
        """Of a query as bytes, turned as the codebook turns vectors."""
        lengths = np.sqrt(np.square(query.packed.astype(np.float64)).sum(axis=(1, 3)))
        largest = float(lengths.max()) * codebook.longest_centroid
        shift = max(0, int(largest / LARGEST).bit_length())
        tiles = codebook.centroid_tiles
        values = np.empty((len(tiles) * TILE, query.scales.size), np.int16)
        _multiply_all(query.packed, query.sums, tiles, shift, values)
        scales = query.scales.reshape(-1).astype(np.float64) * codebook.step * 2**shift / len(query.vectors)
        return CentroidProducts(frozen(values), frozen(scales))

    def scores(self, texts: StoredTexts) -> Float64:
        """The late interaction of texts with centroids, float64[K]; 0 for one without tokens."""
        if any(store.centroids is None for store in texts.stores):
            raise ValueError("these token vectors are stored without centroids")
        scores: Float64 = _centroid_maxsim(self.values, self.scales, *texts.arguments)
        return scores


@compiled(nogil=True)
def _multiply_all(packed: Array, sums: Array, tiles: Array, shift: int, values: Array) -> None:
    """Writes the products of all tiles uint8[T, 8, S], 128 added, over 2^shift."""
    products = np.empty((TILE, LANES), np.int32)
    for place in range(len(tiles)):
        tile = tiles[place]
        for group in range(len(packed)):
            multiply(packed, group, tile, tile.shape[1], products)
            for row in range(TILE):
                for lane in range(LANES):
                    product = (products[row, lane] - sums[group, lane]) >> shift
                    values[place * TILE + row, group * LANES + lane] = product


@compiled(nogil=True)
def _centroid_maxsim(values: Array, scales: Array, stored: Any, texts: Any) -> Array:
    lanes = values.shape[1]
    best = np.empty(lanes, np.int16)
    scores = np.zeros(len(texts[0]))
    for number in range(len(scores)):
        centroids = centroids_of_text(stored, texts, number)
        if len(centroids) == 0:
            continue
        best[:] = -LARGEST
        for centroid in centroids:
            row = values[centroid]
            for lane in range(lanes):
                best[lane] = max(best[lane], row[lane])
        for lane in range(lanes):
            scores[number] += best[lane] * scales[lane]
    return scores
