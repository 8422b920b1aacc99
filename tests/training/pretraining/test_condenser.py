"""Condenser: what its head reads, its losses by hand, and that a batch can be cut up."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from tercet.models.checkpoint import EncodingSettings, Pooling
from tercet.training.pretraining.condenser import Condenser
from tercet.training.pretraining.masking import IGNORED, MaskedText, PaddedTexts, mask_tokens
from tercet.training.pretraining.masking_vocabulary import MaskingVocabulary
from tercet.training.pretraining.mlm_head import MlmHead
from tercet.training.pretraining.span_contrast import span_contrastive_loss

CLS, SEP, MASK = 2, 3, 4
VOCABULARY = MaskingVocabulary.of_arrays(MASK, np.arange(40) < 5, np.zeros(40, np.bool_))
CONTENTS = [[10, 11, 12, 13, 14, 15, 16, 17], [20, 21, 22], [30, 31, 32, 33, 34], [6, 7, 8, 9]]


def masked(body: Any, contents: list[list[int]]) -> MaskedText:
    rows = [[CLS, *content, SEP] for content in contents]
    length = max(map(len, rows))
    pad = body.config.pad_token_id
    ids = torch.tensor([row + [pad] * (length - len(row)) for row in rows])
    lengths = np.array([len(content) for content in contents])
    texts = PaddedTexts(ids, (ids != pad).long(), lengths, np.arange(len(contents)), lengths + 2)
    return mask_tokens(texts, ratio=0.3, vocabulary=VOCABULARY, seed=5)


def model_of(body: Any, pooling: Pooling = "cls", early_layers: int | None = None) -> Condenser:
    torch.manual_seed(11)
    head = MlmHead(body.config)
    return Condenser(body, head, EncodingSettings(pooling=pooling), early_layers=early_layers).eval()


def states_by_layer(body: Any, ids: Tensor) -> list[Tensor]:
    """States float[L, D] of one text without padding: the embeddings, then after each layer."""
    states = [body.embeddings(input_ids=ids.unsqueeze(0))]
    for layer in body.encoder.layer:
        states.append(layer(states[-1], None))
    return [state[0] for state in states]


@pytest.mark.parametrize(("early_layers", "expected"), [(None, 2), (1, 1), (3, 3)])
@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_the_head_reads_the_late_cls_and_early_tokens(
    tiny_body: Any, pooling: Pooling, early_layers: int | None, expected: int
) -> None:
    model = model_of(tiny_body, pooling, early_layers)
    text = masked(tiny_body, CONTENTS)
    seen: list[Tensor] = []
    model.condenser_head[0].register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    with torch.no_grad():
        outputs = model(text)
        for row, content in enumerate(CONTENTS):
            length = len(content) + 2
            states = states_by_layer(tiny_body, text.ids[row, :length])
            late = states[-1][0] if pooling == "cls" else states[-1].mean(0)
            torch.testing.assert_close(seen[0][row, 0], late)
            torch.testing.assert_close(outputs.embeddings[row], late)
            torch.testing.assert_close(seen[0][row, 1:length], states[expected][1:])


def test_losses_by_hand(tiny_body: Any) -> None:
    model = model_of(tiny_body)
    text = masked(tiny_body, CONTENTS)
    words = tiny_body.get_input_embeddings().weight
    late_losses, head_losses = [], []
    with torch.no_grad():
        for row, content in enumerate(CONTENTS):
            length = len(content) + 2
            states = states_by_layer(tiny_body, text.ids[row, :length])
            mixed = torch.cat([states[-1][:1], states[2][1:]]).unsqueeze(0)
            everything = torch.ones(1, 1, length, dtype=torch.bool)
            for layer in model.condenser_head:
                mixed = layer(mixed, mixed, everything)
            for i in range(length):
                if (label := int(text.labels[row, i])) != IGNORED:
                    late_losses.append(negative_log(model, states[-1][i], words, label))
                    head_losses.append(negative_log(model, mixed[0, i], words, label))
        losses = model(text).losses
    assert losses["late_mlm"].item() == pytest.approx(sum(late_losses) / len(late_losses), rel=1e-4)
    assert losses["head_mlm"].item() == pytest.approx(sum(head_losses) / len(head_losses), rel=1e-4)
    assert len(late_losses) == text.predicted


def negative_log(model: Condenser, state: Tensor, words: Tensor, label: int) -> float:
    logits = words @ model.head(state) + model.head.bias
    return -float(logits[label] - logits.exp().sum().log())


def test_the_heads_loss_reaches_late_layers_only_through_cls(tiny_body: Any) -> None:
    model = model_of(tiny_body)
    seen: list[Tensor] = []

    def keep(_: Any, given: Any, output: Tensor) -> None:
        output.retain_grad()
        seen.append(output)

    tiny_body.encoder.layer[-1].register_forward_hook(keep)
    model(masked(tiny_body, CONTENTS)).losses["head_mlm"].backward()
    gradient = seen[0].grad
    assert gradient is not None
    assert (gradient[:, 0].abs().sum(1) > 0).all()
    assert gradient[:, 1:].abs().sum() == 0
    for layer in tiny_body.encoder.layer:
        assert layer.output.dense.weight.grad.abs().sum() > 0


def test_padding_does_not_matter(tiny_body: Any) -> None:
    model = model_of(tiny_body)
    text = masked(tiny_body, CONTENTS).rows(slice(1, 4))
    cut = replace(text, ids=text.ids[:, :7], labels=text.labels[:, :7], mask=text.mask[:, :7])
    with torch.no_grad():
        wide, narrow = model(text), model(cut)
    torch.testing.assert_close(wide.embeddings, narrow.embeddings)
    for name, loss in wide.losses.items():
        torch.testing.assert_close(loss, narrow.losses[name])


def test_gradient_caching_equals_the_whole_batch(tiny_body: Any) -> None:
    """First embeddings without gradients, then parts of the batch, each with its share of the gradient."""
    model = model_of(tiny_body)
    text = masked(tiny_body, CONTENTS)
    outputs = model(text)
    (sum(outputs.losses.values()) + span_contrastive_loss(outputs.embeddings)).backward()
    expected = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    model.zero_grad()

    parts = (slice(0, 2), slice(2, 3), slice(3, 4))
    with torch.no_grad():
        cached = torch.cat([model.embed(text.rows(rows)) for rows in parts]).requires_grad_()
    torch.testing.assert_close(cached, outputs.embeddings)
    span_contrastive_loss(cached).backward()
    assert cached.grad is not None
    for rows in parts:
        part = model(text.rows(rows), text.predicted)
        (sum(part.losses.values()) + (part.embeddings * cached.grad[rows]).sum()).backward()
    for name, parameter in model.named_parameters():
        if name in expected:
            torch.testing.assert_close(parameter.grad, expected[name], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("early_layers", [0, 4, -1])
def test_early_layers_out_of_range_are_named(tiny_body: Any, early_layers: int) -> None:
    with pytest.raises(ValueError, match=f"early_layers is {early_layers} of 4 layers"):
        model_of(tiny_body, early_layers=early_layers)
