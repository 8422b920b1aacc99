"""Attaching, training and saving: PEFT's modules, and the same results without PEFT."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tercet.models.adapters.attach import (
    attach,
    named_tensors,
    save_adapter,
    trainable_parameters,
)
from tercet.models.adapters.base import adapter_base
from tercet.models.adapters.body import FixedAdapters, fold, install
from tercet.models.adapters.files import read_adapter
from tercet.models.adapters.kinds import AdapterSettings, settings_of
from tercet.models.adapters.parts import load_parts
from tercet.models.adapters.record import ResolvedAdapter
from tercet.models.adapters.settings import Ia3Settings, LoraSettings, PrefixSettings, StackSettings
from tercet.models.encoder_model import load_body
from tercet.models.errors import CheckpointError, UnsupportedError
from tercet.models.loader import load_encoder

pytestmark = pytest.mark.slow

KINDS = ["lora", "ia3", "bias", "sparse", "prefix", "prompt", "bottleneck", "parallel", "mixed", "unipelt"]
# Kinds that do not become part of the weights.
IN_GRAPH = ("prefix", "prompt", "bottleneck", "parallel", "mixed", "unipelt", "fusion")
# Kinds that take attention from the first step on.
WITH_PREFIX = ("prefix", "prompt", "mixed", "unipelt")
Settings = dict[str, AdapterSettings]
Moved = Callable[[list[Any], int], None]


@pytest.fixture(scope="module")
def batch() -> tuple[Any, Any]:
    """Token ids and mask of three texts, one of them padded."""
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(5, 60, (3, 9), generator=generator)
    mask = torch.ones_like(ids)
    mask[1, 5:] = 0
    return ids, mask


def states(body: Any, batch: tuple[Any, Any]) -> Any:
    """Hidden states of the tokens, float[ΣL, d]."""
    ids, mask = batch
    return body(input_ids=ids, attention_mask=mask).last_hidden_state[mask.bool()]


def resolved(folder: Path) -> ResolvedAdapter:
    adapter = read_adapter(folder)
    return ResolvedAdapter(folder.name, adapter, (adapter,))


@pytest.mark.parametrize("kind", KINDS)
def test_it_starts_as_the_identity_but_for_prefixes(
    kind: str, bert: Path, batch: Any, settings_by_kind: Settings
) -> None:
    plain = states(load_body(bert), batch)
    attached = states(attach(load_body(bert), kind, settings_by_kind[kind]), batch)
    assert torch.equal(attached, plain) == (kind not in WITH_PREFIX)


def test_a_prefix_starts_small(bert: Path, batch: Any) -> None:
    settings = PrefixSettings(length=40)
    body = attach(load_body(bert), "small", settings)
    drawn = torch.cat([tensor.flatten() for tensor in dict(named_tensors(body, "small", settings)).values()])
    assert drawn.std().item() == pytest.approx(0.02, rel=0.1)
    assert drawn.mean().item() == pytest.approx(0.0, abs=0.002)


@pytest.mark.parametrize("kind", KINDS)
def test_only_the_adapter_trains(kind: str, bert: Path, batch: Any, settings_by_kind: Settings) -> None:
    body, settings = attach(load_body(bert), kind, settings_by_kind[kind]), settings_by_kind[kind]
    parameters = trainable_parameters(body)
    shapes = settings.shapes(adapter_base(bert).body)
    trained = [shape for name, shape in shapes.items() if name != "indices"]
    assert sum(p.numel() for p in parameters) == sum(int(np.prod(shape)) for shape in trained)
    assert all(parameter.dtype == torch.float32 for parameter in parameters)
    before = {name: p.detach().clone() for name, p in body.named_parameters() if not p.requires_grad}
    optimizer = torch.optim.SGD(parameters, lr=0.1)
    random = torch.Generator().manual_seed(1)
    for _ in range(2):
        hidden = states(body, batch)
        (hidden * torch.randn(hidden.shape, generator=random)).sum().backward()
        optimizer.step()
    tensors = dict(named_tensors(body, kind, settings))
    assert tensors.keys() == shapes.keys()
    start = attach(load_body(bert), kind, settings)
    fresh = dict(named_tensors(start, kind, settings))
    assert all(torch.equal(tensor, fresh[name]) == (name == "indices") for name, tensor in tensors.items())
    assert all(torch.equal(p, before[name]) for name, p in body.named_parameters() if name in before)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_saved_computes_the_same_without_peft(
    kind: str, bert: Path, batch: Any, tmp_path: Path, settings_by_kind: Settings, moved: Moved
) -> None:
    settings = settings_by_kind[kind]
    body = attach(load_body(bert), kind, settings)
    moved(trainable_parameters(body), 3)
    expected = states(body.eval(), batch)
    save_adapter(tmp_path / "saved", body, settings, adapter_base(bert), name=kind, language="ko")
    served = load_body(bert)
    install(served, FixedAdapters(load_parts(resolved(tmp_path / "saved"), served)))
    torch.testing.assert_close(states(served, batch), expected, atol=1e-6, rtol=0)
    assert (expected - states(load_body(bert), batch)).abs().max() > 0.05
    assert read_adapter(tmp_path / "saved").language == "ko"


@pytest.mark.parametrize("kind", [*KINDS, "fusion"])
def test_folded_weights_compute_the_same(kind: str, bert: Path, batch: Any, bert_adapters: Path) -> None:
    adapter = resolved(bert_adapters / kind)
    body, folded = load_body(bert), load_body(bert)
    install(body, FixedAdapters(load_parts(adapter, body)))
    rest = fold(folded, load_parts(adapter, folded))
    assert bool(rest) == (kind in IN_GRAPH)
    if rest:
        install(folded, FixedAdapters(rest))
    torch.testing.assert_close(states(folded, batch), states(body, batch), atol=1e-5, rtol=0)


@pytest.mark.parametrize("lower", KINDS)
@pytest.mark.parametrize("upper", KINDS)
def test_an_adapter_trained_on_another_is_served_as_their_stack(
    lower: str,
    upper: str,
    bert: Path,
    batch: Any,
    tmp_path: Path,
    bert_adapters: Path,
    settings_by_kind: Settings,
    moved: Moved,
) -> None:
    below, settings = resolved(bert_adapters / lower), settings_by_kind[upper]
    body = attach(load_body(bert), "upper", settings, below=[below])
    if upper not in WITH_PREFIX:  # the others start as the identity, so the stack of A and the identity is A
        alone = load_body(bert)
        install(alone, FixedAdapters(load_parts(below, alone)))
        assert torch.equal(states(body.eval(), batch), states(alone, batch))
    parameters = trainable_parameters(body)
    moved(parameters, 5)
    expected = states(body.eval(), batch)
    save_adapter(tmp_path / "upper", body, settings, adapter_base(bert))
    stack = ResolvedAdapter("stack", below.record, (*below.parts, *resolved(tmp_path / "upper").parts))
    served, folded = load_body(bert), load_body(bert)
    install(served, FixedAdapters(load_parts(stack, served)))
    torch.testing.assert_close(states(served, batch), expected, atol=1e-5, rtol=0)
    rest = fold(folded, load_parts(stack, folded))
    if rest:
        install(folded, FixedAdapters(rest))
    torch.testing.assert_close(states(folded, batch), expected, atol=1e-5, rtol=0)


def test_dropout_acts_in_training_only(bert: Path, batch: Any, moved: Moved) -> None:
    body = attach(load_body(bert), "law", LoraSettings(rank=2, dropout=0.5))
    moved(trainable_parameters(body), 0)
    expected = states(body.eval(), batch)
    assert torch.equal(states(body, batch), expected)
    for module in body.modules():
        if type(module).__module__.startswith("peft"):
            module.train()
    assert not torch.equal(states(body, batch), expected)


def test_gradients_reach_every_parameter_through_checkpointing(
    bert: Path, batch: Any, settings_by_kind: Settings, moved: Moved
) -> None:
    for kind in KINDS:
        gradients = []
        for checkpointed in (False, True):
            body: Any = attach(load_body(bert), kind, settings_by_kind[kind])
            torch.manual_seed(0)
            moved(trainable_parameters(body), 2)
            if kind == "prefix":
                torch.nn.init.ones_(body.adapter_prefix.embedding.weight)
            if checkpointed:
                body.activation_checkpointing_enable()
            body.train()
            for module in body.modules():
                if isinstance(module, torch.nn.Dropout):
                    module.p = 0.0
            states(body, batch).square().sum().backward()
            named = dict(named_tensors(body, kind, settings_by_kind[kind]))
            gradients.append([p.grad for p in trainable_parameters(body)])
            assert all(gradient is not None for gradient in gradients[-1]), named.keys()
        if kind in ("ia3", "sparse", "prefix"):  # the others begin with random numbers
            for one, other in zip(*gradients, strict=True):
                torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)


def test_the_base_is_that_of_the_encoder(bert: Path, golden: Path) -> None:
    for checkpoint in (bert, golden / "checkpoint"):
        base = adapter_base(checkpoint)
        assert base.fingerprint == load_encoder(str(checkpoint), "torch", device="cpu").info.fingerprint
        assert base.name == checkpoint.name


def test_what_cannot_be_attached(bert: Path) -> None:
    with pytest.raises(CheckpointError, match="a stack has nothing to train"):
        attach(load_body(bert), "law", StackSettings(("a", "b")))
    with pytest.raises(CheckpointError, match=r"adapter name 'no\.dots' does not match"):
        attach(load_body(bert), "no.dots", LoraSettings())
    with pytest.raises(UnsupportedError, match="has an adapter already"):
        attach(attach(load_body(bert), "one", settings_of("lora", {})), "two", settings_of("prefix", {}))


def test_a_body_unlike_bert() -> None:
    from transformers import DistilBertConfig, DistilBertModel, MPNetConfig, MPNetModel

    sizes = {"hidden_size": 8, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    with pytest.raises(UnsupportedError, match=r"MPNetModel has no layer encoder\.layer\.0"):
        attach(MPNetModel(MPNetConfig(vocab_size=9, **sizes)), "law", Ia3Settings())
    config = DistilBertConfig(vocab_size=9, dim=8, hidden_dim=16, n_layers=1, n_heads=2)
    with pytest.raises(CheckpointError, match="configuration has no"):
        attach(DistilBertModel(config), "law", Ia3Settings())
