"""A query's token vectors, as they are compared with stored ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tercet.index.blas import one_blas_thread
from tercet.index.codebook import Codebook
from tercet.index.token_codecs import TokenCodec
from tercet.index.token_vectors.integer_query import IntegerQuery
from tercet.models.representations import Float32


@dataclass(frozen=True, slots=True)
class QueryTokens:
    """N token vectors of a query, float32[N, C]; integers: where documents are stored as bytes, turned as the
    codebook turns vectors where there is one.
    """

    vectors: Float32
    integers: IntegerQuery | None
    codebook: Codebook | None = None

    @staticmethod
    def of(vectors: Float32, codec: TokenCodec, codebook: Codebook | None = None) -> QueryTokens:
        """Of float32[N, C], for documents stored by a codec, and a codebook if it has one."""
        if codebook is not None:
            with one_blas_thread:
                turned = vectors.astype(np.float64) @ codebook.rotation.T
            return QueryTokens(vectors, IntegerQuery.of(turned), codebook)
        return QueryTokens(vectors, IntegerQuery.of(vectors) if codec == "int8" else None)

    def __len__(self) -> int:
        return len(self.vectors)
