"""nDCG@10 of the held-out pairs: chooses the epoch, so that no test set does."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch

from models.representations import Float32, Int64
from training.development import ndcg
from training.encoded_texts import EncodedTexts
from training.frozen.hidden_states import HiddenStates, length_grouped
from training.frozen.sources import PreparedSource
from training.scores import three_scores

Encode = Callable[[HiddenStates, Int64], EncodedTexts]
BLOCK_TOKENS = 8192
CUTOFF = 10


def development_figures(encode: Encode, source: PreparedSource) -> dict[str, float]:
    """Mean nDCG@10 of dense, sparse, colbert and their sum over the development queries of a source.

    Each query ranks the positives of all development pairs; its own are relevant.
    """
    pool = np.unique(np.concatenate([source.positives[i] for i in source.development]))
    relevant = np.zeros((len(source.development), len(pool)), np.bool_)
    for place, pair in enumerate(source.development):
        relevant[place, np.searchsorted(pool, source.positives[pair])] = True
    dense, sparse, colbert = all_scores(encode, source.queries, source.development, source.passages, pool)
    sides = {"dense": dense, "sparse": sparse, "colbert": colbert, "sum": dense + sparse + colbert}
    return {name: ndcg(scores, relevant, CUTOFF) for name, scores in sides.items()}


def all_scores(
    encode: Encode, queries: HiddenStates, query_rows: Int64, passages: HiddenStates, passage_rows: Int64
) -> tuple[Float32, Float32, Float32]:
    """Dense, lexical and ColBERT scores float32[B, N] of the given rows, in blocks of like length."""
    shape = (3, len(query_rows), len(passage_rows))
    scores = np.zeros(shape, np.float32)
    with torch.no_grad():
        query_blocks = [(b, encode(queries, query_rows[b])) for b in blocks(queries, query_rows)]
        for columns in blocks(passages, passage_rows):
            block = encode(passages, passage_rows[columns])
            for rows, query_block in query_blocks:
                found = three_scores(query_block, block)
                for side, values in enumerate((found.dense, found.sparse, found.colbert)):
                    scores[side][np.ix_(rows, columns)] = values.numpy()
    return scores[0], scores[1], scores[2]


def blocks(hidden: HiddenStates, rows: Int64) -> Sequence[Int64]:
    """Places in `rows`, in blocks of texts of like length."""
    return list(length_grouped(hidden.offsets[rows + 1] - hidden.offsets[rows], BLOCK_TOKENS))
