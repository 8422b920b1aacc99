"""The head that predicts hidden tokens, of BERT's kind: dense, activation, LayerNorm, the word embeddings.

Letters in shapes: B texts, L tokens, N of them predicted, D width, V vocabulary.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers.activations import ACT2FN

from tercet.models.packed.model import kept_first
from tercet.models.weights.tensor_files import read_body
from tercet.training.pretraining.masking import IGNORED, MaskedText
from tercet.training.pretraining.token_loss import linear_cross_entropy
from tercet.training.pretraining.vocabulary_gradient import VocabularyGradient

# Our names of the head's tensors, and those of masked language models of the two families.
BERT_NAMES = {
    "cls.predictions.transform.dense.weight": "dense.weight",
    "cls.predictions.transform.dense.bias": "dense.bias",
    "cls.predictions.transform.LayerNorm.weight": "norm.weight",
    "cls.predictions.transform.LayerNorm.bias": "norm.bias",
    "cls.predictions.transform.LayerNorm.gamma": "norm.weight",
    "cls.predictions.transform.LayerNorm.beta": "norm.bias",
    "cls.predictions.bias": "bias",
}
ROBERTA_NAMES = {
    "lm_head.dense.weight": "dense.weight",
    "lm_head.dense.bias": "dense.bias",
    "lm_head.layer_norm.weight": "norm.weight",
    "lm_head.layer_norm.bias": "norm.bias",
    "lm_head.bias": "bias",
}
NAMES = BERT_NAMES | ROBERTA_NAMES


class MlmHead(nn.Module):
    """Maps hidden states to logits over the vocabulary; the word embeddings stay the body's own."""

    def __init__(self, config: Any) -> None:
        """config: the body's transformers configuration; weights are drawn as BERT draws them."""
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)
        nn.init.normal_(self.dense.weight, std=config.initializer_range)
        nn.init.zeros_(self.dense.bias)
        self.activation = ACT2FN[config.hidden_act]
        self.norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.bias = nn.Parameter(torch.zeros(config.vocab_size))

    def forward(self, states: Tensor) -> Tensor:
        """States float[…, D] that, times the word embeddings and plus `bias`, are the logits."""
        transformed: Tensor = self.norm(self.activation(self.dense(states)))
        return transformed

    def loss(
        self,
        hidden: Tensor,
        text: MaskedText,
        words: Tensor,
        tokens: int,
        gradient: VocabularyGradient | None = None,
    ) -> Tensor:
        """Cross-entropy of the predicted tokens, summed and divided by `tokens`, float32[].

        hidden: float[B, L, D], states of the text; words: float[V, D], the word embeddings; tokens: predicted
        tokens of the batch that this is, or is part of; gradient: gathers that of the words over all parts.
        Only predicted tokens get logits. 0 where nothing is predicted.
        """
        labels = text.labels.flatten()
        # As many as the host knows of, which does not wait to count them.
        positions = kept_first(labels != IGNORED)[: text.predicted]
        states = self(hidden.flatten(0, 1).index_select(0, positions))  # (N, D)
        total = linear_cross_entropy(states, words, self.bias, labels[positions], gradient=gradient)
        return total / max(1, tokens)


def load_mlm_head(config: Any, folder: Path | None) -> tuple[MlmHead, bool]:
    """The head for a body, and whether its weights are trained ones from the checkpoint folder.

    config: as in `MlmHead`. Checkpoints of masked language models (`cls.predictions.*` of BERT, `lm_head.*`
    of XLM-RoBERTa) hold a trained head; those of plain encoders, such as all-MiniLM-L6-v2 or BGE-M3, hold
    none, and the head starts at random. Raises CheckpointError where the folder has no weights, or they
    cannot be read.
    """
    head = MlmHead(config)
    arrays = {} if folder is None else read_body(folder, NAMES)
    tensors = {NAMES[name]: torch.from_numpy(array) for name, array in arrays.items()}
    if set(tensors) != set(head.state_dict()) or tensors["bias"].shape != head.bias.shape:
        return head, False
    head.load_state_dict(tensors)
    return head, True
