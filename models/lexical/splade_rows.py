"""Lexical weights over the vocabulary, from logits that are never held for all tokens of a batch at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tercet.models.formats.splade import SpladeSettings
from tercet.models.lexical.reduction import strongest
from tercet.models.representations import Float32, Int64, SparseRows, offsets_of

# Logits that are made together. Fewer tokens than these would read a large head for little work.
CHUNK_BYTES = 32 << 20
LEAST_TOKENS = 64

Join = Callable[[slice, slice], Float32]
"""For some texts of a batch and a part of their tokens: float32[G, V], the maximum of relu(logit) over these
tokens, or the sum of its activation; padding counts as 0."""


def splade_rows(lengths: Int64, vocabulary_size: int, settings: SpladeSettings, join: Join) -> SparseRows:
    """The weights of each text of a batch. lengths: int64[B], their tokens."""
    longest = int(lengths.max(initial=1))
    at_a_time = max(LEAST_TOKENS, CHUNK_BYTES // (4 * vocabulary_size))
    tokens = min(longest, at_a_time)
    texts = at_a_time // tokens
    parts = []
    for first in range(0, len(lengths), texts):
        some = slice(first, first + texts)
        joined = join(some, slice(0, tokens))
        for start in range(tokens, int(lengths[some].max()), tokens):
            more = join(some, slice(start, start + tokens))
            joined = np.maximum(joined, more) if settings.pooling == "max" else joined + more
        parts.append(_rows(joined, settings))
    return SparseRows.concatenate(parts)


def _rows(joined: Float32, settings: SpladeSettings) -> SparseRows:
    """The terms of float32[G, V] above 0. A maximum is activated only here, as the logarithms keep order."""
    texts, terms = np.nonzero(joined > 0)
    weights = joined[texts, terms]
    if settings.pooling == "max":
        weights = np.log1p(weights)
        if settings.activation == "log1p_relu":
            weights = np.log1p(weights)
    indptr = offsets_of(np.bincount(texts, minlength=len(joined)))
    return strongest(SparseRows(indptr, terms.astype(np.int32), weights), settings.max_terms)
