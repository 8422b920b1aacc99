"""Attention over trained bottlenecks, against its formula written out in NumPy, token by token."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("peft", reason="adapters are trained with peft: install tercet[train]")

from tercet.models.adapters.attach import attach, fill_fusion, named_tensors, trainable_parameters
from tercet.models.adapters.base import adapter_base
from tercet.models.adapters.changes import Fusion
from tercet.models.adapters.record import Adapter
from tercet.models.adapters.settings import BottleneckSettings, FusionSettings
from tercet.models.encoder_model import load_body

SIZE = 6
TRAINED = ("query", "key", "value")
Arrays = dict[str, Any]


def fusion(placement: Any) -> Any:
    """A fusion of three unlike bottlenecks in float64, all of whose parameters have moved."""
    settings = FusionSettings(placement, (3, 4, 5), ("relu", "tanh", "relu"), (1.0, 0.5, 3.0))
    torch.manual_seed(0)
    found = Fusion(SIZE, settings).double()
    for parameter in found.parameters():
        parameter.data += 0.7 * torch.randn(parameter.shape, dtype=torch.float64)
    return found


def below(x: Any) -> Any:
    """The layer under the fusion."""
    return x.sin() * 2 + 1


def by_formula(arrays: Arrays, settings: FusionSettings, x: Any) -> Any:
    """y + (I + V)·Σ_n a_n·e_n of each token, with a = softmax_n((Q·z) · (K·e_n)). x: float64[B, L, d]."""
    activations = {"relu": lambda u: np.maximum(u, 0), "tanh": np.tanh}
    output = np.empty_like(x)
    for text, place in np.ndindex(x.shape[:2]):
        y = 2 * np.sin(x[text, place]) + 1
        z = x[text, place] if settings.placement == "parallel" else y
        added, scores = [], []
        for n, bottleneck in enumerate(settings.bottlenecks):
            at = f"bottlenecks.{n}"
            middle = activations[bottleneck.nonlinearity](
                arrays[f"{at}.down.weight"] @ z + arrays[f"{at}.down.bias"]
            )
            up = arrays[f"{at}.up.weight"] @ middle + arrays[f"{at}.up.bias"]
            added.append(bottleneck.scale * up)
            scores.append((arrays["query"] @ z) @ (arrays["key"] @ added[-1]))
        exponents = np.exp(np.array(scores) - max(scores))
        mixed = sum(share * e for share, e in zip(exponents / exponents.sum(), added, strict=True))
        output[text, place] = y + mixed + arrays["value"] @ mixed
    return output


def arrays_of(module: Any) -> Arrays:
    return {name: parameter.detach().numpy().copy() for name, parameter in module.named_parameters()}


@pytest.fixture
def x() -> Any:
    return torch.randn(3, 5, SIZE, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("placement", ["feed_forward", "parallel"])
def test_it_is_the_formula_in_numpy(placement: Any, x: Any) -> None:
    found = fusion(placement)
    settings = FusionSettings(placement, (3, 4, 5), ("relu", "tanh", "relu"), (1.0, 0.5, 3.0))
    expected = by_formula(arrays_of(found), settings, x.numpy())
    with torch.no_grad():
        np.testing.assert_allclose(found(x, below), expected, atol=1e-12)
        single = found.float()(x.float(), below)
        np.testing.assert_allclose(single, expected, rtol=0, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize("placement", ["feed_forward", "parallel"])
def test_gradients_are_finite_differences_of_the_formula(placement: Any, x: Any) -> None:
    found = fusion(placement)
    settings = FusionSettings(placement, (3, 4, 5), ("relu", "tanh", "relu"), (1.0, 0.5, 3.0))
    weights = np.random.default_rng(2).normal(size=x.shape)
    (found(x, below) * torch.from_numpy(weights)).sum().backward()
    arrays, step = arrays_of(found), 1e-6
    for name in TRAINED:
        gradient = getattr(found, name).grad.numpy()
        for place in np.ndindex(SIZE, SIZE):
            around = []
            for sign in (1, -1):
                moved = {**arrays, name: arrays[name].copy()}
                moved[name][place] += sign * step
                around.append((by_formula(moved, settings, x.numpy()) * weights).sum())
            numeric = (around[0] - around[1]) / (2 * step)
            assert gradient[place] == pytest.approx(numeric, rel=1e-6, abs=1e-6)
    assert all(parameter.grad is None for parameter in found.bottlenecks.parameters())


def test_each_token_is_alone(x: Any) -> None:
    found = fusion("feed_forward")
    together = found(x, below)
    for text, place in np.ndindex(x.shape[:2]):
        alone = found(x[text : text + 1, place : place + 1], below)
        torch.testing.assert_close(together[text, place], alone[0, 0], atol=1e-12, rtol=0)


def test_it_starts_as_a_mixture_by_attention() -> None:
    """The value matrix is the identity, so what one bottleneck adds, when all are alike, is added."""
    found = Fusion(SIZE, FusionSettings("feed_forward", (3, 3), ("relu", "relu"), (1.0, 1.0)))
    first, second = found.bottlenecks
    torch.nn.init.normal_(first.up.weight)
    second.load_state_dict(first.state_dict())
    x = torch.randn(2, 4, SIZE)
    torch.testing.assert_close(found(x, below), first(x, below))


@pytest.mark.slow
def test_trained_bottlenecks_are_copied_and_stay_as_they_are(bert: Path) -> None:
    base = adapter_base(bert)
    bottlenecks = (BottleneckSettings(4), BottleneckSettings(7, "silu", scale=2.0))
    random = np.random.default_rng(0)
    trained = [
        Adapter(
            settings,
            base,
            {
                name: random.normal(0, 0.3, shape).astype(np.float32)
                for name, shape in settings.shapes(base.body).items()
            },
        )
        for settings in bottlenecks
    ]
    settings = FusionSettings.of(bottlenecks)
    body = attach(load_body(bert), "law", settings)
    fill_fusion(body, "law", settings, trained)
    start = {name: tensor.detach().clone() for name, tensor in named_tensors(body, "law", settings)}
    ids = torch.randint(5, 60, (3, 9), generator=torch.Generator().manual_seed(0))
    optimizer = torch.optim.AdamW(trainable_parameters(body), lr=0.1, weight_decay=0.5)
    for _ in range(2):
        optimizer.zero_grad()
        body(input_ids=ids).last_hidden_state[:, :, 0].square().sum().backward()
        optimizer.step()
    assert start.keys() == settings.shapes(base.body).keys()
    for name, tensor in named_tensors(body, "law", settings):
        assert torch.equal(tensor, start[name]) == ("bottlenecks" in name), name
        if "bottlenecks" in name:
            slot, inner = name.split(".bottlenecks.")
            number, part = inner.split(".", 1)
            array = trained[int(number)].arrays[f"{slot}.{part}"]
            np.testing.assert_array_equal(tensor.numpy(), array)
