"""The layer of the small networks against the body's own layer with the same weights."""

from __future__ import annotations

from typing import Any

import torch

from tercet.training.pretraining.transformer_layer import TransformerLayer

NAMES = {
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "attention_output": "attention.output.dense",
    "attention_norm": "attention.output.LayerNorm",
    "expand": "intermediate.dense",
    "contract": "output.dense",
    "output_norm": "output.LayerNorm",
}


def test_self_attention_equals_the_bodys_own_layer(tiny_body: Any) -> None:
    theirs = tiny_body.encoder.layer[1]
    ours = TransformerLayer(tiny_body.config).eval()
    for name, their_name in NAMES.items():
        ours.get_submodule(name).load_state_dict(theirs.get_submodule(their_name).state_dict())
    states = torch.randn(2, 5, 16)
    visible = torch.rand(2, 5, 5) < 0.7
    visible[:, :, 0] = True
    expected = theirs(states, visible.unsqueeze(1))
    torch.testing.assert_close(ours(states, states, visible), expected)


def test_the_context_may_differ_from_the_queries(tiny_body: Any) -> None:
    layer = TransformerLayer(tiny_body.config).eval()
    queries, context = torch.randn(1, 3, 16), torch.randn(1, 4, 16)
    visible = torch.tensor([[[True, False, False, False]] * 3])
    before = layer(queries, context, visible)
    context[:, 1:] += 1
    torch.testing.assert_close(layer(queries, context, visible), before)
    context[:, 0] += 1
    assert not torch.allclose(layer(queries, context, visible), before)


def test_weights_start_as_bert_draws_them(tiny_body: Any) -> None:
    layer = TransformerLayer(tiny_body.config)
    assert abs(layer.expand.weight.std().item() - tiny_body.config.initializer_range) < 0.05
    assert layer.expand.bias.abs().sum() == 0
