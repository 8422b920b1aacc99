"""Where lexical weights are pulled to, if the losses ask for it: those by which BM25 would score.

A lexical score multiplies those of query and passage. So each takes the root of a token's idf: a query's
times the token's frequency, a passage's times its saturated frequency with the usual length normalization.
The products add up to BM25, in Lucene's form of idf (Robertson and Zaragoza 2009, 3.4).

Where scores bring the idf of a collection themselves, weights take none. A query's frequencies then saturate
too, with k3 = k1: nothing else would keep its commonest words from having by far the largest targets.
Letters in shapes: B texts, L tokens, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from tercet.models.representations import Bool, Float32, Int64, LexicalKind
from tercet.models.tokenizer import Tokenizer
from tercet.training.data.token_store import TokenStore
from tercet.training.m3.document_frequencies import idf_of_all
from tercet.training.m3.encoded_texts import EncodedTexts
from tercet.training.transfer import on_device

K1 = 1.2
B = 0.75


@dataclass(frozen=True, slots=True)
class LexicalPrior:
    """idf: float32[V], or None where scores bring it; average_tokens: of a passage; scale: of the weights."""

    idf: Float32 | None
    average_tokens: float
    scale: float

    @staticmethod
    def of(
        passages: Sequence[TokenStore], tokenizer: Tokenizer, lexical: LexicalKind, scale: float
    ) -> LexicalPrior:
        """From the passages of all sources, special tokens counted as part of a passage's length.

        lexical: `plain`, or `idf` where scores bring it.
        """
        idf = None
        if lexical == "plain":
            idf = idf_of_all(passages, tokenizer.vocabulary_size)
        lengths = np.concatenate([store.lengths for store in passages])
        return LexicalPrior(idf, float(lengths.mean()), scale)

    def loss(self, texts: EncodedTexts, *, queries: bool) -> Tensor:
        """Mean squared distance of the lexical weights from their targets, over all tokens that are terms."""
        targets, terms = (
            on_device(array, texts.lexical.device)
            for array in (self.targets(texts.token_ids, texts.is_term, queries=queries), texts.is_term)
        )
        return ((texts.lexical - targets) * terms).square().sum() / int(texts.is_term.sum())

    def targets(self, token_ids: Int64, terms: Bool, *, queries: bool) -> Float32:
        """float32[B, L], 0 where no term is: scale · √idf · frequency in a query, saturated in a passage.

        token_ids: int64[B, L]; terms: bool[B, L].
        """
        rows = np.arange(len(token_ids))[:, None]
        keys = np.where(terms, rows * (int(token_ids.max()) + 1) + token_ids, -1)
        _, inverse, counts = np.unique(keys, return_inverse=True, return_counts=True)
        frequency = counts[inverse].reshape(keys.shape).astype(np.float64)
        if not queries or self.idf is None:
            lengths = 1.0 if queries else terms.sum(axis=1, keepdims=True) / self.average_tokens
            frequency = frequency * (K1 + 1) / (frequency + K1 * (1 - B + B * lengths))
        if self.idf is not None:
            frequency = frequency * np.sqrt(self.idf[token_ids])
        targets: Float32 = (self.scale * frequency * terms).astype(np.float32)
        return targets
