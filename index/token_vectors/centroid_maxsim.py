"""Late interaction with the centroids of stored tokens alone, which reads 2 bytes a token.

All inner products of a query's tokens with centroids come first; each stored token then costs one row of
them (the centroid interaction of PLAID: Santhanam et al. 2022, section 4.2).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tercet.index.codebook import TILE, Codebook
from tercet.index.native.kernels import centroid_maxsim, centroid_products
from tercet.index.token_vectors.integer_query import IntegerQuery
from tercet.index.token_vectors.texts import StoredTexts
from tercet.models.representations import Float64

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
        centroid_products(query.packed, query.sums, tiles, shift, values)
        scales = query.scales.reshape(-1).astype(np.float64) * codebook.step * 2**shift / len(query.vectors)
        return CentroidProducts(values, scales)

    def scores(self, texts: StoredTexts) -> Float64:
        """The late interaction of texts with centroids, float64[K]; 0 for one without tokens."""
        if any(store.centroids is None for store in texts.stores):
            raise ValueError("these token vectors are stored without centroids")
        return centroid_maxsim(self.values, self.scales, *texts.of_stores)
