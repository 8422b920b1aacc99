"""Blank texts, which have no token of their own: they say nothing, so no side of theirs may match anything.

An encoder gives them the vectors of its special tokens, which are near those of stop words and punctuation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tercet.models.representations import InputType, Representations, SparseRows, TokenVectors, offsets_of
from tercet.models.tokenizer import Tokenizer


def is_blank(tokenizer: Tokenizer, text: str, input_type: InputType = "document") -> bool:
    """Whether a text has the tokens of an empty one."""
    if any(map(str.isalnum, text)):  # nearly always the first character, and no tokenizer drops it
        return False
    batch = tokenizer.tokenize([text, ""], input_type)
    end = int(batch.offsets[1])
    return np.array_equal(batch.token_ids[:end], batch.token_ids[end:])


def without_blank(tokenizer: Tokenizer, texts: Sequence[str], encoded: Representations) -> Representations:
    """Documents' representations, those of blank texts with a dense vector of zeros, no weight and no token
    vector: each of their scores is 0, with any query.
    """
    blank = np.array([is_blank(tokenizer, text) for text in texts], np.bool_)
    if not blank.any():
        return encoded
    dense, sparse, colbert = encoded.dense, encoded.sparse, encoded.colbert
    if dense is not None:
        dense = np.where(blank[:, None], np.float32(0), dense)
    if sparse is not None:
        lengths = np.diff(sparse.indptr)
        kept = ~np.repeat(blank, lengths)
        indptr = offsets_of(np.where(blank, 0, lengths))
        sparse = SparseRows(indptr, sparse.token_ids[kept], sparse.weights[kept])
    if colbert is not None:
        lengths = np.diff(colbert.offsets)
        kept = ~np.repeat(blank, lengths)
        colbert = TokenVectors(colbert.vectors[kept], offsets_of(np.where(blank, 0, lengths)))
    return replace(encoded, dense=dense, sparse=sparse, colbert=colbert)
