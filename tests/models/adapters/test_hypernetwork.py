"""Bottlenecks that a hypernetwork makes of a language and a task, against its formula in NumPy."""

from __future__ import annotations

from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("peft", reason="adapters are trained with peft: install tercet[train]")

from tercet.models.adapters.attach import attach, own_module, save_adapter, trainable_parameters
from tercet.models.adapters.base import adapter_base
from tercet.models.adapters.blocks import BodyShape
from tercet.models.adapters.compound_settings import HypernetworkSettings
from tercet.models.adapters.files import read_adapter, write_adapter
from tercet.models.adapters.generating import generated
from tercet.models.adapters.parts import Hypernetwork
from tercet.models.adapters.record import Adapter
from tercet.models.adapters.settings import StackSettings
from tercet.models.encoder import encode, with_adapter
from tercet.models.encoder_model import load_body
from tercet.models.errors import AdapterNotFoundError, AdapterNotServedError, CheckpointError
from tercet.models.loader import load_encoder

SIZE = 6
SETTINGS = HypernetworkSettings(("de", "ko"), ("law", "news", "tea"), size=2, width=4, nonlinearity="tanh")
NAMES = [f"world+{language}+{task}" for language, task in product(SETTINGS.languages, SETTINGS.tasks)]
Arrays = dict[str, Any]


def below(x: Any) -> Any:
    """The layer under the bottleneck."""
    return x.sin() * 2 + 1


def by_formula(arrays: Arrays, pair: tuple[int, ...], x: Any) -> Any:
    """y + U·tanh(D·y + d) + u, the four being parts of G·[l; t]. x: float64[B, L, d]."""
    vector = np.concatenate([arrays["languages"][pair[0]], arrays["tasks"][pair[1]]])
    numbers = [sum(row * vector) for row in arrays["layers.0.output.generator"]]
    down, down_bias, up, up_bias = (
        np.array([numbers.pop(0) for _ in range(rows * columns)]).reshape(rows, columns)
        for rows, columns in ((4, SIZE), (1, 4), (SIZE, 4), (1, SIZE))
    )
    y = 2 * np.sin(x) + 1
    return y + np.tanh(y @ down.T + down_bias) @ up.T + up_bias


@pytest.fixture
def network() -> Any:
    """A hypernetwork of one block in float64, all of whose parameters have moved."""
    torch.manual_seed(0)
    found = Hypernetwork(SETTINGS, BodyShape(1, SIZE, 10)).double()
    for parameter in found.parameters():
        parameter.data += 0.5 * torch.randn(parameter.shape, dtype=torch.float64)
    return found


@pytest.fixture
def x() -> Any:
    return torch.randn(3, 5, SIZE, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def arrays_of(network: Any) -> Arrays:
    return {name: tensor.detach().numpy().copy() for name, tensor in network.tensors()}


def output(network: Any, x: Any) -> Any:
    return network.part().changes[0, "output"](x, below)


def test_it_is_the_formula_in_numpy_for_every_pair(network: Any, x: Any) -> None:
    for pair in np.ndindex(2, 3):
        network.choose(SETTINGS.languages[pair[0]], SETTINGS.tasks[pair[1]])
        expected = by_formula(arrays_of(network), pair, x.numpy())
        np.testing.assert_allclose(output(network, x).detach(), expected, atol=1e-12, rtol=0)


def test_gradients_are_finite_differences_of_the_formula(network: Any, x: Any) -> None:
    network.choose("ko", "tea")
    weights = np.random.default_rng(2).normal(size=x.shape)
    (output(network, x) * torch.from_numpy(weights)).sum().backward()
    arrays, step = arrays_of(network), 1e-6
    for name, tensor in network.tensors():
        for place in np.ndindex(tuple(tensor.shape)):
            around = []
            for sign in (1, -1):
                moved = {**arrays, name: arrays[name].copy()}
                moved[name][place] += sign * step
                around.append((by_formula(moved, (1, 2), x.numpy()) * weights).sum())
            numeric = (around[0] - around[1]) / (2 * step)
            assert float(tensor.grad[place]) == pytest.approx(numeric, rel=1e-5, abs=1e-6), (name, place)


def test_it_starts_as_the_identity_with_small_numbers_for_the_middle() -> None:
    torch.manual_seed(0)
    network = Hypernetwork(HypernetworkSettings(("de",), ("law",), width=64), BodyShape(1, 64, 10))
    x = torch.randn(2, 3, 64)
    assert torch.equal(output(network, x), below(x))
    change: Any = network.part().changes[0, "output"]
    assert 0.01 < (change.generator @ network.vector())[: 64 * 64].std().item() < 0.04


@pytest.fixture
def adapters(bert: Path, moved: Any, tmp_path: Path) -> Path:
    """A folder with the hypernetwork `world`, as training leaves it."""
    body = attach(load_body(bert), "world", SETTINGS)
    moved(trainable_parameters(body), 1)
    save_adapter(tmp_path / "adapters" / "world", body, SETTINGS, adapter_base(bert))
    return tmp_path / "adapters"


@pytest.mark.slow
def test_every_pair_is_served_as_it_trains_and_as_the_adapter_made_of_it(
    adapters: Path, bert: Path, moved: Any
) -> None:
    from tercet.models.export_onnx import export_adapter

    write_adapter(adapters / "made", generated(read_adapter(adapters / "world"), "ko", "tea"))
    encoder: Any = load_encoder(str(bert), "torch", device="cpu", adapters=adapters)
    assert [adapter.name for adapter in encoder.describe_adapters()] == ["made", *NAMES]
    ids = torch.tensor([encoder.tokenizer.tokenize(["hello world"], "document").token_ids.tolist()])
    torch.manual_seed(0)
    body = attach(load_body(bert), "world", SETTINGS).eval()
    network: Any = own_module(body, "world")
    network.load_state_dict(parameters_in(adapters / "world"))
    vectors = {}
    for name in NAMES:
        language, task = name.split("+")[1:]
        network.choose(language, task)
        state = body(input_ids=ids).last_hidden_state[0].mean(0).detach().numpy()
        vectors[name] = encode(with_adapter(encoder, name), ["hello world"]).dense[0]
        np.testing.assert_allclose(vectors[name], state / np.linalg.norm(state), atol=1e-5)
        record = encoder.library.get(name).record
        assert (record.kind, record.language, record.domain) == ("bottleneck", language, task)
    for one, other in combinations(vectors.values(), 2):
        assert np.abs(one - other).max() > 1e-3
    assert encoder.adapter_info("made").fingerprint == encoder.adapter_info("world+ko+tea").fingerprint
    export_adapter(bert, adapters / "made", int8=False)  # which compares the graph with torch


def parameters_in(folder: Path) -> Arrays:
    """The arrays of an adapter by the names of the module's parameters."""
    return {
        f"generators.{name.split('.')[1]}_output.generator" if "." in name else name: torch.from_numpy(array)
        for name, array in read_adapter(folder).arrays.items()
    }


@pytest.mark.slow
def test_names_that_stand_for_nothing(adapters: Path, bert: Path, bert_exported: Path) -> None:
    world = read_adapter(adapters / "world")
    write_adapter(adapters / "both", Adapter(StackSettings(("world", "world")), world.base))
    encoder: Any = load_encoder(str(bert), "torch", device="cpu", adapters=adapters)
    for name in ("world", "world+fr+law", "world+ko"):
        with pytest.raises(AdapterNotFoundError, match=r"there are .*world\+de\+law"):
            encoder.adapter_info(name)
    problems = {each.name: each.problem for each in encoder.describe_adapters()}
    assert {name for name, problem in problems.items() if problem} == {"both"}
    for pair, message in (
        (("fr", "law"), "no 'fr' among its languages, de, ko"),
        (("ko", "x"), "no 'x' amo"),
    ):
        with pytest.raises(CheckpointError, match=message):
            generated(world, *pair)
    with pytest.raises(CheckpointError, match="it is of kind bottleneck"):
        generated(generated(world, "ko", "law"), "ko", "law")
    graphs: Any = load_encoder(str(bert_exported), "onnx", adapters=adapters)
    with pytest.raises(AdapterNotServedError, match="tercet adapters generate"):
        graphs.adapter_info("world+ko+law")
