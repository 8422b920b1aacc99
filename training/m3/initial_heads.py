"""Starting points of the heads that already rank well, so that training only has to refine them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from tercet.models.representations import Float32, Int32, TokenBatch
from tercet.models.weights.head_weights import HeadWeights, LinearHead
from tercet.training.data.pair_table import PairTable
from tercet.training.data.token_store import TokenStore
from tercet.training.m3.document_frequencies import idf_of_all
from tercet.training.m3.projection import distilled_projection
from tercet.training.m3.text_encoder import TextEncoder
from tercet.training.settings.objective import HeadSettings

SMALLEST_EIGENVALUE = 1e-2


def initial_heads(
    encoder: TextEncoder, tables: Sequence[PairTable], settings: HeadSettings, seed: int
) -> HeadWeights:
    """Lexical weights that predict a scaled root of idf from a token's state, and a projection for ColBERT.

    A lexical score multiplies those of query and document, so the root makes it a sum of idf, as BM25. Where
    collections bring their own idf, all tokens weigh alike from the start. tables: the sources that train.
    """
    tokenizer = encoder.tokenizer
    passages = [table.passages for table in tables]
    states, token_ids = sample_states(encoder, passages, settings.tokens_each, seed)
    words = ~np.isin(token_ids, list(tokenizer.special_ids))
    targets = np.full(int(words.sum()), settings.idf_scale, np.float32)
    if encoder.lexical == "plain":
        targets *= np.sqrt(idf_of_all(passages, tokenizer.vocabulary_size)[token_ids[words]])
    sparse, bias = ridge_regression(states[words], targets, settings.ridge_penalty)
    colbert = whitened_projection(states, settings.colbert_dimension, settings.whitening, seed)
    colbert_bias = np.zeros(settings.colbert_dimension, np.float32)
    if settings.distil_steps:
        queries, positives = (
            token_states(encoder, texts) for texts in sample_pairs(tables, settings.tokens_each, seed)
        )
        colbert, colbert_bias = distilled_projection(queries, positives, colbert, settings.distil_steps, seed)
    return HeadWeights(
        LinearHead(sparse[None, :], np.array([bias], np.float32)), LinearHead(colbert, colbert_bias)
    )


def whitened_projection(states: Float32, count: int, power: float, seed: int) -> Float32:
    """A random projection of partly whitened states, W = Q · S^−power; float32[count, D].

    S is the second moment of the unit-length states float32[T, D], scaled to mean eigenvalue 1; Q has
    orthonormal rows. Without whitening the few directions that all tokens of a text share drown what tells
    tokens apart, and principal directions keep just those: on held-out pairs they rank worse than Q alone.
    """
    unit = states / np.maximum(np.linalg.norm(states, axis=1, keepdims=True), 1e-12)
    values, vectors = np.linalg.eigh(unit.T @ unit)
    # Layer normalization leaves directions without variance; they must not be blown up.
    values = np.maximum(values / values.mean(), SMALLEST_EIGENVALUE)
    whitening = (vectors * values**-power) @ vectors.T
    normal = np.random.default_rng(seed).standard_normal((states.shape[1], count))
    orthonormal, _ = np.linalg.qr(normal)
    return np.ascontiguousarray(orthonormal.T @ whitening, np.float32)


def ridge_regression(states: Float32, targets: Float32, penalty: float) -> tuple[Float32, float]:
    """Weights float32[D] and bias with w·h + b nearest to the targets in squares; w alone is penalized.

    states: float32[T, D]; targets: float32[T].
    """
    centre, mean = states.mean(axis=0), float(targets.mean())
    centred = (states - centre).astype(np.float64)
    gram = centred.T @ centred + penalty * np.eye(states.shape[1])
    weights = np.linalg.solve(gram, centred.T @ (targets - mean)).astype(np.float32)
    return weights, mean - float(centre @ weights)


def sample_states(
    encoder: TextEncoder, passages: Sequence[TokenStore], tokens_each: int, seed: int
) -> tuple[Float32, Int32]:
    """States float32[T, D] and token ids int32[T] of random texts of each source, of about `tokens_each`."""
    generator = np.random.default_rng(seed)
    states, token_ids = [], []
    for store in passages:
        order = generator.permutation(len(store))
        count = 1 + int(np.searchsorted(np.cumsum(store.lengths[order]), tokens_each))
        parts, _ = encoder.parts(store.take(order[:count]))
        for part in parts:
            with torch.inference_mode():
                hidden, mask = encoder.hidden(part)
            states.append(hidden[mask.bool()].cpu().numpy())
            token_ids.append(part.token_ids)
    return np.concatenate(states), np.concatenate(token_ids)


def sample_pairs(tables: Sequence[PairTable], tokens_each: int, seed: int) -> tuple[TokenBatch, TokenBatch]:
    """Queries, and a positive passage of each: random training pairs of each source, whose passages have
    about `tokens_each` tokens.
    """
    generator = np.random.default_rng(seed)
    queries: list[TokenBatch] = []
    passages: list[TokenBatch] = []
    for table in tables:
        pairs = generator.permutation(table.training)
        positives = table.positives.rows[table.positives.offsets[pairs]]
        count = 1 + int(np.searchsorted(np.cumsum(table.passages.lengths[positives]), tokens_each))
        queries.append(table.queries.take(pairs[:count]))
        passages.append(table.passages.take(positives[:count]))
    return TokenBatch.concatenate(queries), TokenBatch.concatenate(passages)


def token_states(encoder: TextEncoder, texts: TokenBatch) -> list[Tensor]:
    """States float16[L, D] of each text without its first token, in the given order."""
    parts, order = encoder.parts(texts)
    text_states: list[Tensor] = []
    for part in parts:
        with torch.no_grad():
            hidden, mask = encoder.hidden(part)
        lengths: list[int] = mask.sum(dim=1).tolist()
        text_states += [states[1:length].half() for states, length in zip(hidden, lengths, strict=True)]
    return [text_states[number] for number in order.tolist()]
