"""The weights that a sparse adapter changes, against squared gradients of a plain body."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="these tests train: install tercet[train]")
pytest.importorskip("peft", reason="adapters are trained with peft: install tercet[train]")

from transformers import BertConfig, BertModel

from tercet.models.adapters.attach import attach, choose_weights, named_tensors, weights_to_choose_from
from tercet.models.adapters.settings import SparseSettings
from tercet.training.distributed import ALONE
from tercet.training.runs.fisher import fisher_information

SIZES = {"hidden_size": 8, "intermediate_size": 12, "num_hidden_layers": 2, "num_attention_heads": 2}


class Loss:
    """A stage whose batches are token ids int64[B, L], and whose loss is a function of the body's states."""

    steps_per_epoch = 1

    def __init__(self, body: Any, batches: list[Any]) -> None:
        self.body = body
        self.batches = batches

    def accumulate(self, step: int, scaled: Any, before_last: Any = None) -> Any:
        before_last()
        scaled(self.of(step)).backward()

    def of(self, step: int) -> Any:
        states = self.body(input_ids=self.batches[step]).last_hidden_state
        return (states * torch.arange(states.numel()).view_as(states).sin()).sum()

    def evaluate(self) -> Any:
        return {}


def test_weights_of_the_largest_mean_of_squared_gradients_are_chosen() -> None:
    torch.manual_seed(0)
    plain = BertModel(BertConfig(vocab_size=30, max_position_embeddings=16, **SIZES)).eval()
    batches = [torch.randint(30, (2, 5)) for _ in range(4)]
    settings = SparseSettings(count=50, targets=("intermediate", "query"))
    body = attach(deepcopy(plain), "law", settings).eval()
    weights = weights_to_choose_from(body, settings)
    information = fisher_information(Loss(body, batches), weights, 3, ALONE)
    assert not any(weight.requires_grad or weight.grad is not None for weight in weights.values())

    stage = Loss(plain, batches)
    layers = {
        (number, role): layer.weight
        for number, block in enumerate(plain.encoder.layer)
        for role, layer in (("query", block.attention.self.query), ("intermediate", block.intermediate.dense))
    }
    gradients = [torch.autograd.grad(stage.of(step), list(layers.values())) for step in range(3)]
    expected = {
        slot: torch.stack([of_batch[n] for of_batch in gradients]).square().mean(0)
        for n, slot in enumerate(layers)
    }
    assert information.keys() == expected.keys()
    for slot, values in expected.items():
        torch.testing.assert_close(information[slot], values, atol=1e-6, rtol=1e-5)

    choose_weights(body, "law", settings, information)
    indices = dict(named_tensors(body, "law", settings))["indices"].tolist()
    of_block = 4 * 8 * 8 + 2 * 8 * 12  # query first, intermediate behind the four of the attention
    starts = {(n, role): n * of_block + (256 if role == "intermediate" else 0) for n, role in expected}
    ranked = sorted(
        (
            (value, starts[slot] + n)
            for slot, values in expected.items()
            for n, value in enumerate(values.flatten())
        ),
        reverse=True,
    )
    assert indices == sorted(index for _, index in ranked[:50])
