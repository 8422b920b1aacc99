"""Groups of AdamW, and the learning rate of every step."""

from __future__ import annotations

from pathlib import Path

import pytest

from tercet.models.checkpoint import EncodingSettings
from tercet.models.encoder_model import EncoderModel, load_body
from tercet.models.heads import Heads
from tercet.training.optimizer import make_optimizer, rate_factor, set_rates
from tercet.training.settings.optimization import FinetuneOptimization

SETTINGS = FinetuneOptimization(
    learning_rate=0.01, steps=10, heads_learning_rate=0.1, weight_decay=0.05, warmup=0.2
)


def test_heads_have_a_rate_of_their_own_and_biases_do_not_decay(base_folder: Path) -> None:
    model = EncoderModel(load_body(base_folder), Heads(16, 8, EncodingSettings()))
    model.body.embeddings.requires_grad_(False)  # type: ignore[union-attr]
    groups = make_optimizer(model, SETTINGS).param_groups
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    of = {names[id(p)]: (g["peak"], g["weight_decay"]) for g in groups for p in g["params"]}
    assert set(of) == {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    assert of["heads.colbert.weight"] == (0.1, 0.05)
    assert of["heads.sparse.bias"] == (0.1, 0.0)
    assert of["body.encoder.layer.0.output.dense.weight"] == (0.01, 0.05)
    assert of["body.encoder.layer.0.output.LayerNorm.weight"] == (0.01, 0.0)
    alike = make_optimizer(model, SETTINGS.model_copy(update={"heads_learning_rate": None})).param_groups
    assert {group["peak"] for group in alike} == {0.01}


def test_scales_that_start_at_1_do_not_decay(base_folder: Path) -> None:
    pytest.importorskip("peft", reason="adapters are trained with peft: install tercet[train]")
    from tercet.models.adapters.attach import attach
    from tercet.models.adapters.settings import Ia3Settings, LoraSettings

    for settings, decay in ((Ia3Settings(), 0.0), (LoraSettings(), 0.05)):
        model = EncoderModel(load_body(base_folder), Heads(16, 8, EncodingSettings()))
        attach(model.body, "a", settings)
        model.heads.requires_grad_(False)
        assert {group["weight_decay"] for group in make_optimizer(model, SETTINGS).param_groups} == {decay}


@pytest.mark.parametrize(
    ("decay", "expected"),
    [
        ("linear", [0.5, 1, 1, 7 / 8, 6 / 8, 5 / 8, 4 / 8, 3 / 8, 2 / 8, 1 / 8]),
        ("none", [0.5, *[1] * 9]),
    ],
)
def test_rates_by_hand(decay: str, expected: list[float]) -> None:
    settings = SETTINGS.model_copy(update={"decay": decay})  # type: ignore[arg-type]
    assert [rate_factor(step, 0, 10, settings) for step in range(10)] == pytest.approx(expected)


def test_the_body_warms_up_from_where_it_begins_to_train(base_folder: Path) -> None:
    settings = SETTINGS.model_copy(update={"head_warmup_steps": 4, "warmup": 0.5})
    model = EncoderModel(load_body(base_folder), Heads(16, 8, EncodingSettings()))
    optimizer = make_optimizer(model, settings)
    heads = {id(parameter) for parameter in model.heads.parameters()}
    found: dict[bool, list[float]] = {True: [], False: []}
    for step in range(10):
        set_rates(optimizer, step, 10, settings)
        for of_heads, rates in found.items():
            (rate,) = {g["lr"] for g in optimizer.param_groups if (id(g["params"][0]) in heads) == of_heads}
            rates.append(rate)
    # Of ten steps the heads warm up for five, the body for three of the six that it trains.
    assert found[True] == pytest.approx([0.02, 0.04, 0.06, 0.08, 0.1, 0.1, 0.08, 0.06, 0.04, 0.02])
    assert found[False] == pytest.approx(
        [0, 0, 0, 0, 0.01 / 3, 0.02 / 3, 0.01, 0.01, 0.02 / 3, 0.01 / 3], abs=1e-12
    )


def test_a_cosine_falls_from_one_to_zero() -> None:
    settings = SETTINGS.model_copy(update={"decay": "cosine", "warmup": 0.0})
    found = [rate_factor(step, 0, 9, settings) for step in range(10)]
    assert found[:2] == [1.0, 1.0]
    assert found[5] == pytest.approx(0.5)
    assert found[9] == pytest.approx(0.0)
    assert found == sorted(found, reverse=True)
