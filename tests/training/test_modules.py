"""Modules that learn with their router, held against formulas written out in NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

pytest.importorskip("peft", reason="adapters are trained with peft: install tercet[train]")

from tercet.models.adapters.attach import attach_modules, trainable_parameters
from tercet.models.adapters.body import ThreadAdapters, linear_at
from tercet.models.adapters.changes import Lora
from tercet.models.adapters.kinds import settings_of
from tercet.models.adapters.routers import Router, RouterBase, SoftSettings
from tercet.models.adapters.settings import LoraSettings
from tercet.training.modules import RoutedModules, balance_loss, largest, module_weights
from tercet.training.settings.adapter import RoutingSettings

SLOT = 1, "query"
LORA = LoraSettings(rank=2, alpha=6.0, targets=("query", "output"))
NAMES = ("a", "b", "c", "d")
KINDS = ["lora", "ia3", "bias", "prefix", "bottleneck"]
SCORES = torch.tensor(
    [[0.1, 2.0, -1.0, 0.4], [1.0, 0.0, 0.5, 0.9], [0.0, 3.0, 1.0, 0.2], [0.3, 0.3, 0.3, 0.3]]
)


def moved(body: torch.nn.Module) -> None:
    """Moves all modules as training would, each otherwise."""
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in trainable_parameters(body):
            parameter += 0.3 * torch.randn(parameter.shape, generator=generator)


def routed(body: torch.nn.Module, top: int, kind: str = "lora") -> RoutedModules:
    """Four modules in a body, already trained, as it seems."""
    active = ThreadAdapters()
    parts = attach_modules(body, NAMES, LORA if kind == "lora" else settings_of(kind, {}), active)
    moved(body)
    return RoutedModules(parts, active, 16, RoutingSettings(modules=len(NAMES), top=top))


def softmax(scores: np.ndarray) -> np.ndarray:
    raised = np.exp(scores - scores.max(-1, keepdims=True))
    return raised / raised.sum(-1, keepdims=True)


def chosen_by_hand(scores: np.ndarray, top: int) -> list[int]:
    """The best, one after the other; of equal ones the first."""
    left, chosen = list(range(len(scores))), []
    for _ in range(top):
        best = max(left, key=lambda column: (scores[column], -column))
        left.remove(best)
        chosen.append(best)
    return sorted(chosen)


def array(tensor: Tensor) -> np.ndarray:
    return tensor.detach().double().numpy()


def test_of_equal_scores_the_first_are_chosen() -> None:
    assert largest(SCORES, 2).tolist() == [[1, 3], [0, 3], [1, 2], [0, 1]]
    assert largest(SCORES, 1).tolist() == [[1], [0], [1], [0]]


@pytest.mark.parametrize("top", [1, 2, 3, 4])
def test_the_balance_loss_by_hand(top: int) -> None:
    scores = torch.randn(9, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    counts = np.zeros(4)
    for row in array(scores):
        counts[chosen_by_hand(row, top)] += 1
    shares, means = counts / counts.sum(), softmax(array(scores)).mean(0)
    assert float(balance_loss(scores, top)) == pytest.approx(4 * float(shares @ means), abs=1e-9)
    given = scores.clone().requires_grad_()
    balance_loss(given, top).backward()
    p = softmax(array(scores))
    # ∂/∂s_bj of 4/B · Σ_i f_i · p_bi
    expected = 4 / 9 * p * (shares - (p @ shares)[:, None])
    assert given.grad is not None
    np.testing.assert_allclose(array(given.grad), expected, atol=1e-9)


def test_the_balance_loss_is_least_where_modules_are_used_alike() -> None:
    alike = 20 * torch.eye(4)
    assert float(balance_loss(alike, 1)) == pytest.approx(1.0)
    assert float(balance_loss(alike[:1].expand(4, 4), 1)) == pytest.approx(4.0)


def test_weights_are_a_softmax_over_the_chosen() -> None:
    weights = array(module_weights(SCORES, largest(SCORES, 2)))
    for row, found in zip(array(SCORES), weights, strict=True):
        np.testing.assert_allclose(found, softmax(row[chosen_by_hand(row, 2)]), atol=1e-6)
    assert module_weights(SCORES, largest(SCORES, 1)).tolist() == [[1.0, 0.0]] * 4


@pytest.mark.parametrize("top", [1, 2, 4])
def test_a_layer_by_hand(tiny_body: Any, top: int) -> None:
    modules = routed(tiny_body, top)
    layer: Any = linear_at(tiny_body, SLOT)
    x = torch.randn(4, 5, 16, generator=torch.Generator().manual_seed(2))
    with modules.acting(SCORES):
        found = array(layer(x))
    expected = array(x) @ array(layer.weight).T + array(layer.bias)
    for text, scores in enumerate(array(SCORES)):
        columns = chosen_by_hand(scores, top)
        for weight, column in zip(softmax(scores[columns]), columns, strict=True):
            lora = tiny_body.get_submodule(f"adapter_{NAMES[column]}.1_query")
            product = array(lora.lora_b) @ array(lora.lora_a)
            expected[text] += weight * 3.0 * array(x)[text] @ product.T
    np.testing.assert_allclose(found, expected, atol=2e-6)


def test_gradients_are_finite_differences(tiny_body: Any) -> None:
    modules = routed(tiny_body, 2).double()
    tiny_body.double()
    layer: Any = linear_at(tiny_body, SLOT)
    x, dense = (torch.randn(4, *shape, 16, dtype=torch.float64) for shape in ((3,), ()))
    loras = [tiny_body.get_submodule(f"adapter_{name}.1_query") for name in NAMES]
    trained = [modules.gate.weight, modules.gate.bias, *(lora.lora_a for lora in loras)]

    def output(*_: Tensor) -> Tensor:
        with modules.acting(modules(dense)):
            states: Tensor = layer(x)
        return states

    with torch.no_grad():
        modules.gate.weight *= 50  # so that no step changes a choice
    assert torch.autograd.gradcheck(output, trained)


def test_a_single_module_has_the_gradient_of_its_probability(tiny_body: Any) -> None:
    modules = routed(tiny_body, 1)
    layer: Any = linear_at(tiny_body, SLOT)
    x = torch.randn(4, 5, 16)
    scores = SCORES.clone().requires_grad_()
    with modules.acting(scores):
        output = layer(x)
    output.sum().backward()
    added = array((output - layer(x)).sum((1, 2)))  # what the gradient of its factor is
    p, best = softmax(array(SCORES)), [1, 0, 1, 0]
    expected = np.stack([added[b] * p[b, i] * (np.eye(4)[i] - p[b]) for b, i in enumerate(best)])
    assert scores.grad is not None
    np.testing.assert_allclose(array(scores.grad), expected, atol=2e-5)
    assert np.abs(expected).max() > 0.1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("top", [1, 2, 4])
def test_texts_together_are_as_each_alone_and_all_of_it_trains(tiny_body: Any, top: int, kind: str) -> None:
    modules = routed(tiny_body, top, kind)
    ids = torch.randint(5, 40, (4, 6), generator=torch.Generator().manual_seed(4))

    def states(rows: Sequence[int]) -> Tensor:
        with modules.acting(scores[rows]):
            hidden: Tensor = tiny_body(ids[rows], torch.ones_like(ids[rows])).last_hidden_state
        return hidden

    scores = SCORES.clone().requires_grad_()
    together = states([0, 1, 2, 3])
    for row in range(4):
        torch.testing.assert_close(together[row], states([row])[0], atol=2e-6, rtol=0)
    together.square().sum().backward()
    assert scores.grad is not None
    assert (scores.grad.abs().sum(1) > 0).all()
    used = {column for row in array(SCORES) for column in chosen_by_hand(row, top)}
    for column, name in enumerate(NAMES):
        gradients = [p.grad for p in tiny_body.get_submodule(f"adapter_{name}").parameters()]
        assert all((gradient is not None) == (column in used) for gradient in gradients), name


def test_all_of_them_are_as_a_soft_router_weighs_them(tiny_body: Any) -> None:
    modules = routed(tiny_body, 4)
    dense = torch.nn.functional.normalize(torch.randn(6, 16), dim=1)
    scores = modules(dense)
    arrays = {name: parameter.detach().numpy() for name, parameter in modules.gate.named_parameters()}
    for top, settings in (
        (4, SoftSettings(NAMES, "gate")),
        (3, SoftSettings(NAMES, "gate", top=3)),
        (2, SoftSettings(NAMES, "gate", top=2)),
    ):
        chosen = largest(scores, top)
        routes = Router(settings, RouterBase("tiny", "f"), arrays).routes(dense.numpy())
        assert [route.adapters for route in routes] == [
            tuple(NAMES[column] for column in row) for row in chosen.tolist()
        ]
        weights = np.array([route.weights for route in routes])
        np.testing.assert_allclose(array(module_weights(scores, chosen)), weights, atol=1e-6)


@pytest.mark.parametrize("top", [1, 2])
def test_what_is_not_chosen_is_not_computed(
    tiny_body: Any, monkeypatch: pytest.MonkeyPatch, top: int
) -> None:
    modules = routed(tiny_body, top)
    rows: dict[int, int] = {}
    forward = Lora.forward

    def counted(self: Lora, x: Tensor, below: Any) -> Tensor:
        rows[id(self)] = rows.get(id(self), 0) + len(x)
        return forward(self, x, below)

    monkeypatch.setattr(Lora, "forward", counted)
    ids = torch.randint(5, 40, (4, 6))
    with modules.acting(SCORES):
        tiny_body(ids, torch.ones_like(ids))
    for column, name in enumerate(NAMES):
        texts = sum(column in chosen_by_hand(row, top) for row in array(SCORES))
        for lora in tiny_body.get_submodule(f"adapter_{name}").children():
            assert rows.get(id(lora), 0) == texts, name


def test_without_scores_the_base_acts_alone(tiny_body: Any) -> None:
    ids = torch.randint(5, 40, (4, 6))
    plain = tiny_body(ids, torch.ones_like(ids)).last_hidden_state
    modules = routed(tiny_body, 2)
    assert torch.equal(tiny_body(ids, torch.ones_like(ids)).last_hidden_state, plain)
    with modules.acting(SCORES):
        assert not torch.equal(tiny_body(ids, torch.ones_like(ids)).last_hidden_state, plain)
    assert torch.equal(tiny_body(ids, torch.ones_like(ids)).last_hidden_state, plain)
