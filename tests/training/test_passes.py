"""A packed pass of training gives what the library's own padded pass gives, and the same gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel

from tercet.training import passes
from tercet.training.passes import LAST, packs, prepare, states, states_of_layers

PADDING = {"bert": 0, "xlm-roberta": 1, "distilbert": 0, "modernbert": 0, "qwen3": 0}
LENGTHS = np.array([7, 2, 11, 5])


def body_of(family: str) -> nn.Module:
    """A random body of two layers over 40 ids, in evaluation mode. In float64: it is no test of rounding."""
    torch.manual_seed(7)
    config = AutoConfig.for_model(
        family,
        vocab_size=40,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=24,
        initializer_range=0.3,
        pad_token_id=PADDING[family],
        **({"local_attention": 6, "global_attn_every_n_layers": 2} if family == "modernbert" else {}),
        **({"num_key_value_heads": 1, "head_dim": 8} if family == "qwen3" else {}),
        **({"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 32} if family == "distilbert" else {}),
    )
    body: nn.Module = AutoModel.from_config(config).double().eval()
    return body


def given(family: str) -> tuple[Tensor, Tensor]:
    """Ids and mask of four texts; the padding id is no token of theirs."""
    torch.manual_seed(1)
    present = torch.arange(int(LENGTHS.max())) < torch.from_numpy(LENGTHS)[:, None]
    ids = torch.randint(5, 40, present.shape).masked_fill(~present, PADDING[family])
    return ids, present.long()


def gradients(body: nn.Module, found: Tensor, mask: Tensor) -> dict[str, Tensor]:
    """Of a sum that weighs every number of every token otherwise."""
    weights = torch.linspace(-1, 1, found.numel()).view_as(found) * mask.unsqueeze(2)
    body.zero_grad()
    (found * weights).sum().backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
    return {name: p.grad.clone() for name, p in body.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("family", list(PADDING))
def test_states_and_gradients_equal_those_of_the_padded_pass(family: str) -> None:
    body = body_of(family)
    ids, mask = given(family)
    expected = body(input_ids=ids, attention_mask=mask).last_hidden_state
    by_hand = gradients(body, expected, mask)
    prepare(body)
    assert packs(body, ids.device)
    shapes: list[Any] = []
    body.register_forward_pre_hook(
        lambda _, __, named: shapes.append(named["input_ids"].shape), with_kwargs=True
    )
    found = states(body, ids, mask, LENGTHS)
    assert shapes == [(1, int(LENGTHS.sum()))]  # nothing of padding goes through the body
    chosen = mask.bool()
    torch.testing.assert_close(found[chosen], expected[chosen], atol=1e-5, rtol=1e-5)
    ours = gradients(body, found, mask)
    assert set(ours) == set(by_hand)
    assert max(float(gradient.abs().max()) for gradient in ours.values()) > 0.01
    for name, gradient in by_hand.items():
        torch.testing.assert_close(ours[name], gradient, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("family", ["bert", "xlm-roberta", "modernbert", "qwen3"])
@pytest.mark.parametrize("lengths", [LENGTHS, np.array([6, 6])], ids=["ragged", "whole"])
def test_padded_passes_are_those_of_the_library(
    family: str, lengths: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a GPU in float32: the mask is made without a look at it."""
    body = body_of(family)
    present = torch.arange(int(lengths.max())) < torch.from_numpy(lengths)[:, None]
    ids = torch.randint(5, 40, present.shape).masked_fill(~present, PADDING[family])
    expected = body(input_ids=ids, attention_mask=present.long()).last_hidden_state[present]
    prepare(body)
    monkeypatch.setattr(passes, "packs", lambda *_: False)
    found = states(body, ids, present.long(), lengths)[present]
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)


def test_states_after_early_layers(tiny_body: Any) -> None:
    ids = torch.randint(5, 40, (4, 11))
    mask = (torch.arange(11) < torch.from_numpy(LENGTHS)[:, None]).long()
    ids = ids.masked_fill(mask == 0, tiny_body.config.pad_token_id)
    expected = tiny_body(input_ids=ids, attention_mask=mask, output_hidden_states=True).hidden_states
    prepare(tiny_body)
    early, late = states_of_layers(tiny_body, ids, mask, LENGTHS, [2, LAST])
    chosen = mask.bool()
    torch.testing.assert_close(early[chosen], expected[2][chosen], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(late[chosen], expected[-1][chosen], atol=1e-5, rtol=1e-5)


def test_attention_leaves_weights_out_as_dropout_says(tiny_body: Any) -> None:
    ids, mask = given("bert")
    for module in tiny_body.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    prepare(tiny_body)
    tiny_body.train()
    calm = states(tiny_body, ids, mask, LENGTHS)
    assert torch.equal(calm, states(tiny_body, ids, mask, LENGTHS))
    for layer in tiny_body.encoder.layer:
        layer.attention.self.dropout.p = 0.5
    assert not torch.allclose(calm, states(tiny_body, ids, mask, LENGTHS), atol=1e-3)
    tiny_body.eval()
    torch.testing.assert_close(calm, states(tiny_body, ids, mask, LENGTHS))
