"""The sample of enhanced decoding: its rules, and that blocks of it are the whole in less memory."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from tercet.models.checkpoint import EncodingSettings
from tercet.training.pretraining import sampled_attention, transformer_layer
from tercet.training.pretraining.masking import PaddedTexts
from tercet.training.pretraining.masking_vocabulary import MaskingVocabulary
from tercet.training.pretraining.mlm_head import MlmHead
from tercet.training.pretraining.retromae import RetroMae, RetroMaeInputs, draw_retromae_inputs
from tercet.training.pretraining.sampled_attention import SampledAttention
from tercet.training.runs.positions import widen_positions
from tests.training.operations import Operations

VOCABULARY = MaskingVocabulary.of_arrays(4, np.arange(40) < 5, np.zeros(40, np.bool_))


def texts_of(lengths: list[int]) -> PaddedTexts:
    """Texts of so many tokens, whose ids do not matter."""
    mask = (torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1)).long()
    return PaddedTexts(mask, mask, np.array(lengths), np.arange(len(lengths)), np.array(lengths))


def whole(texts: PaddedTexts, ratio: float, seed: int) -> Tensor:
    """What every position attends to, bool[B, L, L]."""
    return SampledAttention.of(texts, ratio, seed).visible(slice(0, texts.ids.shape[1]))


def test_mask_rules_position_by_position() -> None:
    lengths = [6, 3, 1]
    for seed in range(30):
        visible = whole(texts_of(lengths), 0.5, seed)
        for row, length in enumerate(lengths):
            for i in range(6):
                assert visible[row, i, 0]
                for j in range(1, 6):
                    if i == j or i >= length or j >= length:
                        assert not visible[row, i, j]


@pytest.mark.parametrize("ratio", [0.5, 0.7])
def test_each_row_sees_its_own_sample(ratio: float) -> None:
    visible = whole(texts_of([60] * 4), ratio, 1)
    others = ~torch.eye(60, dtype=torch.bool).expand(4, 60, 60).clone()
    others[:, :, 0] = False
    assert visible[others].float().mean().item() == pytest.approx(1 - ratio, abs=0.02)
    rows = visible[0, :, 1:].int()
    assert len({tuple(row.tolist()) for row in rows}) == 60


def test_the_decoders_ratio_must_be_between_0_and_1() -> None:
    with pytest.raises(ValueError, match="decoder's masking ratio is 1"):
        whole(texts_of([3]), 1.0, 0)


def test_padding_does_not_change_the_sampled_attention() -> None:
    together = whole(texts_of([3, 5]), 0.5, 4)
    for row, length in enumerate((3, 5)):
        alone = whole(replace(texts_of([length]), numbers=np.array([row])), 0.5, 4)
        assert torch.equal(together[row, :length, :length], alone[0])


@pytest.mark.parametrize("at_once", [1, 40, 1000])
def test_blocks_are_drawn_as_the_whole(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sampled_attention.PAIRS_AT_ONCE, "cpu", at_once)
    sample = SampledAttention.of(texts_of([9, 4]), 0.5, 3)
    parts = [sample.visible(block) for block in sample.blocks()]
    assert [part.shape[1] for part in parts] == {1: [1] * 9, 40: [2, 2, 2, 2, 1], 1000: [9]}[at_once]
    assert torch.equal(torch.cat(parts, dim=1), whole(texts_of([9, 4]), 0.5, 3))


def model_and_inputs(body: Any, lengths: list[int]) -> tuple[RetroMae, RetroMaeInputs]:
    """A model with two decoder layers, and texts of so many tokens."""
    torch.manual_seed(11)
    model = RetroMae(body, MlmHead(body.config), EncodingSettings(), decoder_layers=2).eval()
    texts = texts_of(lengths)
    ids = torch.randint(5, 40, texts.ids.shape).masked_fill(texts.mask == 0, body.config.pad_token_id)
    return model, draw_retromae_inputs(replace(texts, ids=ids), VOCABULARY, (1, 2))


def losses_and_gradients(model: RetroMae, inputs: RetroMaeInputs) -> tuple[Tensor, dict[str, Tensor]]:
    torch.manual_seed(5)
    model.zero_grad()
    loss = model(inputs).total()
    loss.backward()
    return loss.detach(), {
        name: parameter.grad.clone()
        for name, parameter in model.named_parameters()
        if parameter.grad is not None
    }


def test_losses_and_gradients_in_blocks_are_those_of_the_whole(
    tiny_body: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, inputs = model_and_inputs(tiny_body, [20, 13])
    loss, gradients = losses_and_gradients(model, inputs)
    monkeypatch.setitem(sampled_attention.PAIRS_AT_ONCE, "cpu", 3 * 2 * 20)
    in_blocks, of_blocks = losses_and_gradients(model, inputs)
    torch.testing.assert_close(in_blocks, loss)
    assert set(of_blocks) == set(gradients)
    for name, gradient in gradients.items():
        torch.testing.assert_close(of_blocks[name], gradient, rtol=1e-4, atol=1e-6)


def test_dropout_is_the_same_when_blocks_are_computed_again(
    tiny_body: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, inputs = model_and_inputs(tiny_body, [20, 13])
    model.decoder.train()
    monkeypatch.setitem(sampled_attention.PAIRS_AT_ONCE, "cpu", 3 * 2 * 20)
    loss, gradients = losses_and_gradients(model, inputs)
    monkeypatch.setattr(transformer_layer, "checkpoint", lambda function, *given, **options: function(*given))
    kept_loss, kept = losses_and_gradients(model, inputs)
    assert torch.equal(kept_loss, loss)
    for name, gradient in kept.items():
        torch.testing.assert_close(gradients[name], gradient)


def decoded(body: Any, length: int) -> tuple[int, int]:
    """Numbers in the largest tensor of decoding, forward and back, and in all that waits for the way back."""
    model, inputs = model_and_inputs(body, [length])
    embeddings = torch.randn(1, 16, requires_grad=True)
    waiting: dict[int, int] = {}

    def wait(tensor: Tensor) -> Tensor:
        waiting[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes() // tensor.itemsize
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(wait, lambda tensor: tensor):
        states = model.decode(embeddings, inputs)
    with Operations() as operations:
        model.decode(embeddings, inputs).sum().backward()
    assert states.shape == (1, length, 16)
    return operations.largest, sum(waiting.values())


def test_what_is_held_grows_with_the_length_not_with_its_square(
    tiny_body: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once, heads, inner = 3000, 2, 32
    monkeypatch.setitem(sampled_attention.PAIRS_AT_ONCE, "cpu", at_once)
    widen_positions(tiny_body, 400)
    short, long = (decoded(tiny_body, length) for length in (200, 400))
    assert long[0] <= max(at_once * heads, 400 * inner) < 400 * 400
    parameters = sum(parameter.numel() for parameter in tiny_body.parameters())
    assert long[1] <= 2 * short[1] + parameters
