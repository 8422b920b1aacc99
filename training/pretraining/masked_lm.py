"""Masked language modelling alone (Devlin et al. 2019, section 3.1): the control of every other objective.

Letters in shapes: B texts, D width.
"""

from __future__ import annotations

from torch import nn

from tercet.models.checkpoint import EncodingSettings
from tercet.models.heads import pool
from tercet.training.pretraining.body_states import last_states, word_embeddings
from tercet.training.pretraining.masking import MaskedText
from tercet.training.pretraining.mlm_head import MlmHead
from tercet.training.pretraining.outputs import PretrainingOutputs
from tercet.training.pretraining.vocabulary_gradient import VocabularyGradient


class MaskedLm(nn.Module):
    """A body with its prediction head; after pre-training only `body` is kept.

    vocabulary_losses: how many losses read the word embeddings as what predicts.
    """

    vocabulary_losses = 1

    def __init__(self, body: nn.Module, head: MlmHead, settings: EncodingSettings) -> None:
        """settings: of the checkpoint."""
        super().__init__()
        self.body = body
        self.head = head
        self.settings = settings

    def forward(
        self,
        inputs: MaskedText,
        batch_predicted: int | None = None,
        gradient: VocabularyGradient | None = None,
    ) -> PretrainingOutputs:
        """Loss `mlm`, a mean over the predicted tokens, and embeddings float[B, D], which no loss reads.

        batch_predicted: `predicted` of the whole batch where `inputs` are some of its rows; the losses of all
        its parts, and their gradients, then add up to those of the whole. gradient: gathers that of the word
        embeddings.
        """
        tokens = inputs.predicted if batch_predicted is None else batch_predicted
        hidden = last_states(self.body, inputs)
        loss = self.head.loss(hidden, inputs, word_embeddings(self.body), tokens, gradient)
        return PretrainingOutputs(pool(hidden, inputs.mask, self.settings), {"mlm": loss})
