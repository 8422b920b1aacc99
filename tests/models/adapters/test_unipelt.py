"""Adapters behind gates, against a NumPy transformer that is written out block by block."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import erf

torch = pytest.importorskip("torch")
pytest.importorskip("peft", reason="adapters are trained with peft: install tercet[train]")

from tercet.models.adapters.attach import attach, named_tensors, trainable_parameters
from tercet.models.adapters.compound_settings import UnipeltSettings
from tercet.models.encoder_model import load_body

pytestmark = pytest.mark.slow

SETTINGS = UnipeltSettings(rank=2, alpha=3.0, length=3, width=4)
LENGTHS = (9, 5)
Arrays = dict[str, Any]


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def linear(weights: Arrays, at: str, x: Any) -> Any:
    return x @ weights[f"{at}.weight"].T + weights[f"{at}.bias"]


def normalized(weights: Arrays, at: str, x: Any, epsilon: float) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + epsilon)
    return scaled * weights[f"{at}.weight"] + weights[f"{at}.bias"]


def gate(own: Arrays, at: str, x: Any) -> Any:
    """σ(w·x + b)."""
    return sigmoid(x @ own[f"{at}.gate.weight"].T + own[f"{at}.gate.bias"])


def by_formula(weights: Arrays, own: Arrays, config: Any, embedded: Any) -> Any:
    """States of one text. embedded: float64[L, d]; own: the adapter's tensors."""
    states, heads = embedded, config.num_attention_heads
    width = states.shape[1] // heads
    for block in range(config.num_hidden_layers):
        at, mine = f"encoder.layer.{block}", f"layers.{block}"

        def adapted(role: str, x: Any, at: str = at, mine: str = mine) -> Any:
            low = x @ own[f"{mine}.{role}.lora_a"].T @ own[f"{mine}.{role}.lora_b"].T
            added = gate(own, f"{mine}.{role}", x) * SETTINGS.alpha / SETTINGS.rank * low
            return linear(weights, f"{at}.attention.self.{role}", x) + added

        query, value = adapted("query", states), adapted("value", states)
        key = linear(weights, f"{at}.attention.self.key", states)
        opened = gate(own, f"{mine}.prefix", query[0])
        key = np.concatenate([opened * own[f"{mine}.prefix_key"], key])
        value = np.concatenate([opened * own[f"{mine}.prefix_value"], value])
        attended = []
        for head in range(heads):
            part = slice(head * width, (head + 1) * width)
            scores = query[:, part] @ key[:, part].T / np.sqrt(width)
            shares = np.exp(scores - scores.max(-1, keepdims=True))
            attended.append(shares / shares.sum(-1, keepdims=True) @ value[:, part])
        projected = linear(weights, f"{at}.attention.output.dense", np.concatenate(attended, axis=1))
        norm = f"{at}.attention.output.LayerNorm"
        middle = normalized(weights, norm, projected + states, config.layer_norm_eps)
        inner = linear(weights, f"{at}.intermediate.dense", middle)
        output = linear(weights, f"{at}.output.dense", inner * (1 + erf(inner / np.sqrt(2))) / 2)
        low = np.maximum(linear(own, f"{mine}.output.down", output), 0)
        output = output + gate(own, f"{mine}.output", output) * linear(own, f"{mine}.output.up", low)
        states = normalized(weights, f"{at}.output.LayerNorm", output + middle, config.layer_norm_eps)
    return states


@pytest.fixture
def body(bert: Path, moved: Any) -> Any:
    """A body in float64 with an adapter all of whose parameters have moved."""
    found = attach(load_body(bert), "law", SETTINGS).eval().double()
    moved(trainable_parameters(found), 1)
    for name, tensor in named_tensors(found, "law", SETTINGS):
        if "gate" in name:
            tensor.data *= 5  # so that gates differ between tokens
    return found


def texts(body: Any) -> tuple[Any, Any]:
    """Token ids int64[2, 9] and their mask; the second text is padded."""
    ids = torch.randint(5, 60, (2, 9), generator=torch.Generator().manual_seed(0))
    return ids, torch.arange(9) < torch.tensor(LENGTHS)[:, None]


def arrays(body: Any) -> tuple[Arrays, Arrays]:
    """The weights of the plain body, and the tensors of the adapter."""
    weights = {name: tensor.detach().numpy() for name, tensor in body.state_dict().items()}
    own = {name: tensor.detach().numpy() for name, tensor in named_tensors(body, "law", SETTINGS)}
    return weights, own


def expected(body: Any, own: Arrays, ids: Any) -> list[Any]:
    weights, _ = arrays(body)
    embedded = body.embeddings(input_ids=ids).detach().numpy()
    return [
        by_formula(weights, own, body.config, one[:length])
        for one, length in zip(embedded, LENGTHS, strict=True)
    ]


def test_it_is_the_formula_in_numpy_whatever_is_padded(body: Any) -> None:
    ids, mask = texts(body)
    _, own = arrays(body)
    found = body(input_ids=ids, attention_mask=mask.long()).last_hidden_state.detach().numpy()
    for states, wanted in zip(found, expected(body, own, ids), strict=True):
        np.testing.assert_allclose(states[: len(wanted)], wanted, atol=1e-10, rtol=0)
    single = body.float()(input_ids=ids, attention_mask=mask.long()).last_hidden_state.detach().numpy()
    np.testing.assert_allclose(single[mask], found[mask], atol=1e-5, rtol=0)


def test_gradients_are_finite_differences_of_the_formula(body: Any) -> None:
    ids, mask = texts(body)
    random = np.random.default_rng(2)
    factors = random.normal(size=(*ids.shape, body.config.hidden_size))
    states = body(input_ids=ids, attention_mask=mask.long()).last_hidden_state
    (states * torch.from_numpy(factors))[mask].sum().backward()
    parameters = dict(named_tensors(body, "law", SETTINGS))
    prefixes = body.adapter_law.prefix.embedding.weight.grad.view(3, -1, 2, body.config.hidden_size)
    _, own = arrays(body)
    step = 1e-6
    for name, array in own.items():
        if "prefix_" in name:
            gradient = prefixes[:, int(name.split(".")[1]), int(name.endswith("value"))].numpy()
        else:
            gradient = parameters[name].grad.numpy()
        place = tuple(int(random.integers(size)) for size in array.shape)
        around = []
        for sign in (1, -1):
            changed = {**own, name: array.copy()}
            changed[name][place] += sign * step
            found = zip(expected(body, changed, ids), factors, strict=True)
            around.append(sum((one * factor[: len(one)]).sum() for one, factor in found))
        numeric = (around[0] - around[1]) / (2 * step)
        assert gradient[place] == pytest.approx(numeric, rel=1e-5, abs=1e-6), name
