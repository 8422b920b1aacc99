"""How many passages hold each token, and the idf that follows: what rarity means while training.

A checkpoint whose collections multiply a query's lexical weights by their idf (`lexical` of `tercet.json`)
is trained by such scores. Each source of pairs then stands for a collection of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tercet.index.sparse.idf import inverse_document_frequencies
from tercet.models.representations import Float32, Int64
from tercet.models.tokenizer import Tokenizer
from tercet.training.data.token_store import TokenStore
from tercet.training.m3.encoded_texts import EncodedTexts
from tercet.training.transfer import on_device


@dataclass(frozen=True, slots=True)
class SourceIdf:
    """What the query weights of each token are multiplied by: factors float32[V], idf(t) / m.

    The formula is that of `tercet.index.sparse.idf`, but lexical weights, which every step changes, count
    as 1 each
    in m. Special tokens have none.
    """

    factors: Float32

    @staticmethod
    def of(passages: TokenStore, tokenizer: Tokenizer) -> SourceIdf:
        """From the passages of one source."""
        frequencies = document_frequencies(passages, tokenizer.vocabulary_size)
        frequencies[list(tokenizer.special_ids)] = 0
        idf = inverse_document_frequencies(len(passages), frequencies)
        mean = np.average(idf, weights=frequencies) if frequencies.any() else 1.0
        return SourceIdf((idf / mean).astype(np.float32))

    def weighted(self, queries: EncodedTexts) -> EncodedTexts:
        """The queries with their lexical weights times the factors."""
        factors = on_device(self.factors[queries.token_ids], queries.lexical.device)
        return replace(queries, lexical=queries.lexical * factors)


def idf_of_all(passages: Sequence[TokenStore], vocabulary_size: int) -> Float32:
    """The idf of each token over the passages of all sources together; float32[V]."""
    frequencies = np.sum([document_frequencies(store, vocabulary_size) for store in passages], axis=0)
    return inverse_document_frequencies(sum(map(len, passages)), frequencies).astype(np.float32)


def document_frequencies(passages: TokenStore, vocabulary_size: int) -> Int64:
    """How many passages hold each token; int64[V]."""
    rows = np.repeat(np.arange(len(passages), dtype=np.int64), passages.lengths)
    pairs = np.unique(rows * vocabulary_size + passages.token_ids)
    return np.bincount(pairs % vocabulary_size, minlength=vocabulary_size)
