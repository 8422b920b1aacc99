"""Condenser: late layers are trained by a head that reads the late CLS beside early token states.

Gao & Callan 2021, arXiv 2104.08253. Letters in shapes: B texts, L tokens, D width.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from tercet.models.checkpoint import EncodingSettings
from tercet.models.heads import pool
from tercet.training.pretraining.body_states import early_and_late_states, last_states, word_embeddings
from tercet.training.pretraining.masking import MaskedText
from tercet.training.pretraining.mlm_head import MlmHead
from tercet.training.pretraining.outputs import PretrainingOutputs
from tercet.training.pretraining.transformer_layer import TransformerLayer
from tercet.training.pretraining.vocabulary_gradient import VocabularyGradient

HEAD_LAYERS = 2


class Condenser(nn.Module):
    """A body with its Condenser head; after pre-training only `body` is kept.

    The head's layers start at random, as in the paper (section 3.2) and in the released code
    (luyug/Condenser `modeling.py`); the loss on the late output keeps the untrained head from spoiling the
    body. Both losses share the prediction head. The paper's text embedding is CLS; with a checkpoint that
    pools by mean, the mean of the late states takes its place.
    """

    vocabulary_losses = 2

    def __init__(
        self,
        body: nn.Module,
        head: MlmHead,
        settings: EncodingSettings,
        *,
        early_layers: int | None = None,
        head_layers: int = HEAD_LAYERS,
    ) -> None:
        """settings: of the checkpoint; early_layers: how many layers are early, by default half.

        Raises ValueError where no early or no late layer is left.
        """
        super().__init__()
        config: Any = body.config
        layers = config.num_hidden_layers
        self.early_layers = layers // 2 if early_layers is None else early_layers
        if not 0 < self.early_layers < layers:
            raise ValueError(
                f"early_layers is {self.early_layers} of {layers} layers; it must be from 1 to {layers - 1}"
            )
        self.body = body
        self.head = head
        self.settings = settings
        self.condenser_head = nn.ModuleList(TransformerLayer(config) for _ in range(head_layers))

    def forward(
        self,
        inputs: MaskedText,
        batch_predicted: int | None = None,
        gradient: VocabularyGradient | None = None,
    ) -> PretrainingOutputs:
        """Losses `late_mlm` and `head_mlm`, each a mean over the predicted tokens.

        inputs: from `mask_tokens`, ratio 0.15 in the paper; batch_predicted: `predicted` of the whole batch
        where `inputs` are some of its rows; the losses of all its parts, and their gradients, then add up to
        those of the whole; gradient: gathers that of the word embeddings. The embeddings are for
        `span_contrastive_loss`.
        """
        tokens = inputs.predicted if batch_predicted is None else batch_predicted
        early, late = early_and_late_states(self.body, inputs, self.early_layers)
        embeddings = pool(late, inputs.mask, self.settings)
        words = word_embeddings(self.body)
        condensed = self.condense(embeddings, early, inputs.mask)
        losses = {
            "late_mlm": self.head.loss(late, inputs, words, tokens, gradient),
            "head_mlm": self.head.loss(condensed, inputs, words, tokens, gradient),
        }
        return PretrainingOutputs(embeddings, losses)

    def embed(self, inputs: MaskedText) -> Tensor:
        """The embeddings alone, float[B, D]: the first pass of gradient caching."""
        return pool(last_states(self.body, inputs), inputs.mask, self.settings)

    def condense(self, embeddings: Tensor, early: Tensor, mask: Tensor) -> Tensor:
        """States float[B, L, D] of the head from embeddings float[B, D] and early states float[B, L, D]."""
        states = torch.cat([embeddings.unsqueeze(1), early[:, 1:]], dim=1)
        for layer in self.condenser_head:
            states = layer(states, states, mask.bool().unsqueeze(1))
        return states
