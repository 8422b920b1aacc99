"""The prediction head against transformers' own masked language models, and its trained weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from tercet.training.pretraining.body_states import last_states, word_embeddings
from tercet.training.pretraining.masking import IGNORED, MaskedText
from tercet.training.pretraining.mlm_head import MlmHead, load_mlm_head

IDS = torch.tensor([[2, 7, 8, 9, 3], [2, 11, 12, 13, 3]])
LABELS = torch.tensor([[IGNORED, 7, IGNORED, 9, IGNORED], [IGNORED, 31, IGNORED, IGNORED, IGNORED]])


def text() -> MaskedText:
    return MaskedText(IDS, LABELS, torch.ones_like(IDS), np.array([2, 1]), np.array([5, 5]))


def masked_language_model(body: Any) -> Any:
    """A random model with a trained head's looks: no bias is zero."""
    from transformers import AutoModelForMaskedLM

    torch.manual_seed(2)
    model = AutoModelForMaskedLM.from_config(body.config).eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.3)
    return model


@pytest.mark.parametrize("suffix", ["safetensors", "bin"])
def test_loss_and_weights_equal_those_of_a_masked_language_model(
    tiny_body: Any, tmp_path: Path, suffix: str
) -> None:
    model = masked_language_model(tiny_body)
    if suffix == "safetensors":
        model.save_pretrained(tmp_path)
    else:
        torch.save(model.state_dict(), tmp_path / "pytorch_model.bin")
    head, trained = load_mlm_head(model.config, tmp_path)
    assert trained
    body = model.base_model
    hidden = last_states(body, text())
    loss = head.loss(hidden, text(), word_embeddings(body), tokens=3)
    torch.testing.assert_close(loss, model(input_ids=IDS, labels=LABELS).loss)


def test_older_names_of_layer_normalization_are_known(tiny_body: Any, tmp_path: Path) -> None:
    model = masked_language_model(tiny_body)
    state = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): value
        for name, value in model.state_dict().items()
    }
    torch.save(state, tmp_path / "pytorch_model.bin")
    assert load_mlm_head(model.config, tmp_path)[1]


def test_a_plain_encoder_has_no_trained_head(tiny_body: Any, tmp_path: Path) -> None:
    tiny_body.save_pretrained(tmp_path)
    assert not load_mlm_head(tiny_body.config, tmp_path)[1]
    assert not load_mlm_head(tiny_body.config, None)[1]


def test_a_head_for_another_vocabulary_is_not_taken(tiny_body: Any, tmp_path: Path) -> None:
    masked_language_model(tiny_body).save_pretrained(tmp_path)
    tiny_body.config.vocab_size = 41
    assert not load_mlm_head(tiny_body.config, tmp_path)[1]


def test_losses_of_parts_add_up(tiny_body: Any) -> None:
    head = MlmHead(tiny_body.config)
    hidden = last_states(tiny_body, text()).detach()
    words = word_embeddings(tiny_body)
    parts = [head.loss(hidden[row], text().rows(row), words, tokens=3) for row in (slice(0, 1), slice(1, 2))]
    torch.testing.assert_close(sum(parts), head.loss(hidden, text(), words, tokens=3))


def test_nothing_predicted_gives_zero_and_the_body_a_gradient_of_zero(tiny_body: Any) -> None:
    head = MlmHead(tiny_body.config)
    hidden = last_states(tiny_body, text())
    nothing = MaskedText(
        IDS, torch.full_like(IDS, IGNORED), torch.ones_like(IDS), np.zeros(2, np.int64), np.array([5, 5])
    )
    loss = head.loss(hidden, nothing, word_embeddings(tiny_body), tokens=0)
    loss.backward()
    assert loss.item() == 0
    assert word_embeddings(tiny_body).grad.abs().sum() == 0


def test_gradients_reach_words_body_and_head(tiny_body: Any) -> None:
    head = MlmHead(tiny_body.config)
    hidden = last_states(tiny_body, text())
    head.loss(hidden, text(), word_embeddings(tiny_body), tokens=3).backward()
    parameters = [*head.parameters(), word_embeddings(tiny_body), *tiny_body.encoder.layer[0].parameters()]
    for parameter in parameters:
        assert parameter.grad is not None
    # An id that is neither read nor wanted gets its gradient from the softmax alone.
    assert word_embeddings(tiny_body).grad[39].abs().sum() > 0
