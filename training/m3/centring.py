"""Dense vectors whose mean is zero, without a change to the other two sides.

Bodies trained with a low temperature keep all their vectors in a narrow cone: unrelated texts of
multilingual-e5-small have cosines around 0.8, related ones little more. Dense scores then hardly differ
between documents, and drown in the plain sum of the three sides. Pooling is linear, so the mean of the pooled
states can be taken from the last layer norm's bias; then it is gone from every dense vector before that is
normalized (Mu and Viswanath 2018, arXiv 1702.01417, without their projection), and the heads' biases put
it back for their own sides.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tercet.models.encoder_model import EncoderModel
from tercet.models.heads import pool
from tercet.models.representations import TokenBatch
from tercet.training.errors import ConfigError
from tercet.training.m3.text_encoder import TextEncoder


def mean_of_dense(encoder: TextEncoder, queries: TokenBatch, passages: TokenBatch) -> Tensor:
    """The mean float32[D] of the pooled states of queries and passages, both counting alike."""
    return torch.stack([_pooled(encoder, texts).mean(dim=0) for texts in (queries, passages)]).mean(dim=0)


def centre(model: EncoderModel, mean: Tensor) -> None:
    """Takes `mean`, float32[D], from every state, in place; lexical weights and token vectors stay.

    Raises ConfigError where the body does not end as BERT and its kin do.
    """
    bias = _last_bias(model.body)
    with torch.no_grad():
        bias.sub_(mean.to(bias))
        for head in (model.heads.sparse, model.heads.colbert):
            if head is not None:
                head.bias.add_(head.weight @ mean.to(head.weight))


def _last_bias(body: nn.Module) -> nn.Parameter:
    """The bias of the layer norm after the last layer, float[D].

    The last one of all modules may be another: DeBERTa has one of its relative positions.
    """
    layers = getattr(getattr(body, "encoder", None), "layer", None)
    norm = getattr(getattr(layers[-1], "output", None), "LayerNorm", None) if layers else None
    if not isinstance(norm, nn.LayerNorm) or norm.bias is None:
        raise ConfigError(
            "the body's dense vectors cannot be centred: its last layer norm has no bias, or is not where "
            "BERT and its kin have it"
        )
    return norm.bias


def _pooled(encoder: TextEncoder, texts: TokenBatch) -> Tensor:
    """What dense vectors are before they are normalized, float32[B, D], in any order."""
    parts, _ = encoder.parts(texts)
    vectors = []
    for part in parts:
        with torch.no_grad():
            hidden, mask = encoder.hidden(part)
        vectors.append(pool(hidden, mask, encoder.model.heads.settings))
    return torch.cat(vectors)
