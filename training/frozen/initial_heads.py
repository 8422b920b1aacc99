"""Starting points of the heads that already rank well, so that fitting only has to refine them."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

import numpy as np

from models.head_weights import HeadWeights
from models.representations import Float32, Int32
from training.frozen.config import InitialSettings
from training.frozen.hidden_states import HiddenStates
from training.initial_heads import ridge_regression, whitened_projection

SMALLEST_EIGENVALUE = 1e-2


def initial_heads(
    passages: Sequence[HiddenStates],
    vocabulary_size: int,
    special_ids: AbstractSet[int],
    colbert_dimension: int,
    settings: InitialSettings,
    seed: int,
) -> HeadWeights:
    """Sparse weights that predict a scaled idf from a token's state, and a projection for ColBERT.

    passages: those of the sources trained on, the held-out ones among them, by source.
    """
    states, token_ids = sample_states(passages, settings.tokens_each, seed)
    words = ~np.isin(token_ids, list(special_ids))
    idf = inverse_document_frequencies(passages, vocabulary_size)
    targets = settings.idf_scale * idf[token_ids[words]]
    sparse, bias = ridge_regression(states[words], targets, settings.ridge_penalty)
    return HeadWeights(
        sparse_weight=sparse[None, :],
        sparse_bias=np.array([bias], np.float32),
        colbert_weight=whitened_projection(states, colbert_dimension, settings.whitening, seed),
        colbert_bias=np.zeros(colbert_dimension, np.float32),
    )


def inverse_document_frequencies(passages: Sequence[HiddenStates], vocabulary_size: int) -> Float32:
    """ln(1 + (N − n + ½)/(n + ½)) of each token id over all N passages, n of which hold it; float32[V].

    The form of BM25 in Lucene, always above 0.
    """
    holding = np.zeros(vocabulary_size, np.int64)
    total = 0
    for hidden in passages:
        rows = np.repeat(np.arange(len(hidden), dtype=np.int64), np.diff(hidden.offsets))
        pairs = np.unique(rows * vocabulary_size + hidden.token_ids)
        holding += np.bincount(pairs % vocabulary_size, minlength=vocabulary_size)
        total += len(hidden)
    return np.log1p((total - holding + 0.5) / (holding + 0.5)).astype(np.float32)


def sample_states(texts: Sequence[HiddenStates], tokens_each: int, seed: int) -> tuple[Float32, Int32]:
    """States float32[T, D] and token ids int32[T] of up to `tokens_each` random tokens of each set."""
    generator = np.random.default_rng(seed)
    states, token_ids = [], []
    for hidden in texts:
        count = min(tokens_each, len(hidden.token_ids))
        positions = np.sort(generator.choice(len(hidden.token_ids), count, replace=False))
        states.append(np.asarray(hidden.states[positions], np.float32))
        token_ids.append(hidden.token_ids[positions])
    return np.concatenate(states), np.concatenate(token_ids)
