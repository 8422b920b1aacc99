"""Masked language modelling alone, token by token, and that a batch can be cut up."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from tercet.models.checkpoint import EncodingSettings, Pooling
from tercet.training.pretraining.masked_lm import MaskedLm
from tercet.training.pretraining.masking import IGNORED, MaskedText
from tercet.training.pretraining.mlm_head import MlmHead


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_the_loss_is_the_mean_over_hidden_tokens(tiny_body: Any, pooling: Pooling) -> None:
    torch.manual_seed(11)
    model = MaskedLm(tiny_body, MlmHead(tiny_body.config), EncodingSettings(pooling=pooling)).eval()
    pad = tiny_body.config.pad_token_id
    ids = torch.tensor([[2, 4, 11, 12, 3], [2, 20, 4, 3, pad]])
    labels = torch.tensor([[IGNORED, 10, IGNORED, 12, IGNORED], [IGNORED, IGNORED, 21, IGNORED, IGNORED]])
    text = MaskedText(ids, labels, (ids != pad).long(), np.array([2, 1]), np.array([5, 4]))
    with torch.no_grad():
        outputs = model(text)
        hidden = tiny_body(input_ids=ids, attention_mask=text.mask).last_hidden_state
        words = tiny_body.get_input_embeddings().weight
        expected = 0.0
        for row, place, label in ((0, 1, 10), (0, 3, 12), (1, 2, 21)):
            logits = words @ model.head(hidden[row, place]) + model.head.bias
            expected -= float(logits.log_softmax(0)[label]) / 3
        parts = [model(text.rows(slice(row, row + 1)), text.predicted).losses["mlm"].item() for row in (0, 1)]
    assert list(outputs.losses) == ["mlm"]
    assert outputs.losses["mlm"].item() == pytest.approx(expected, rel=1e-5)
    assert sum(parts) == pytest.approx(expected, rel=1e-5)
    pooled = hidden[1, 0] if pooling == "cls" else hidden[1, :4].mean(0)
    torch.testing.assert_close(outputs.embeddings[1], pooled)
