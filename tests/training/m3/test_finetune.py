"""Fine-tuning's anchors, when gradients are cached, and dropout, through the stage and whole runs."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tercet.training.m3.finetune
from tercet.models.encoder import encode
from tercet.models.loader import load_encoder
from tercet.training.distributed import Ranks
from tercet.training.m3.encoded_texts import EncodedTexts
from tercet.training.m3.finetune import Finetune
from tercet.training.m3.losses import anchor_losses
from tercet.training.run import finetuning
from tercet.training.runs.base import open_base
from tercet.training.runs.log import read_log
from tercet.training.settings.run import RunSettings

SettingsOf = Callable[[dict[str, Any]], Any]
Run = Callable[..., Any]
ANCHORS = {"losses.anchor_dense": 100.0, "losses.anchor_colbert": 100.0}
TEXTS = ["word1 word2 word3", "word7", "word39 word8 word8 word20 word5"]


def losses_of(folder: Path) -> list[dict[str, float]]:
    return [line["losses"] for line in read_log(folder / "run") if "losses" in line]


def texts(dense: list[list[float]], vectors: list[list[list[float]]], mask: list[list[bool]]) -> EncodedTexts:
    unused = torch.zeros(len(dense), len(mask[0]) + 1)
    return EncodedTexts(
        torch.tensor(dense, requires_grad=True),
        unused,
        np.zeros(unused.shape, np.int64),
        np.zeros(unused.shape, np.bool_),
        torch.tensor(vectors, requires_grad=True),
        np.array(mask),
    )


def test_the_anchor_by_hand() -> None:
    mask = [[True, True], [True, False]]
    base = texts([[1.0, 0], [0, 1.0]], [[[1.0, 0], [1, 0]], [[0, 1.0], [9, 9]]], mask)
    # Cosines of the dense vectors: 0.6 and 1. Of the three token vectors: 1, 0 and 0.8; padding counts not.
    moved = texts([[0.6, 0.8], [0, 1]], [[[1.0, 0], [0, 1]], [[0.6, 0.8], [-9, 9]]], mask)
    terms = anchor_losses(moved, base)
    assert terms["anchor_dense"].item() == pytest.approx((0.4 + 0) / 2)
    assert terms["anchor_colbert"].item() == pytest.approx((0 + 1 + 0.2) / 3)
    terms["anchor_colbert"].backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
    assert moved.vectors.grad is not None
    assert moved.vectors.grad[1, 1].tolist() == [0, 0]
    same = anchor_losses(base, base)
    assert all(term.item() == pytest.approx(0, abs=1e-6) for term in same.values())


def test_anchors_are_0_before_anything_has_changed(run: Run, tmp_path: Path) -> None:
    run("out", {**ANCHORS, "optimization.dropout": 0.0, "optimization.steps": 3})
    first, *later = losses_of(tmp_path / "out")
    for term in ("anchor_dense", "anchor_colbert"):
        assert first[term] == pytest.approx(0, abs=1e-6)
        assert all(step[term] > 1e-4 for step in later)


@pytest.mark.slow
def test_large_anchors_hold_the_vectors_of_the_base(run: Run, tmp_path: Path) -> None:
    run("base", {"optimization.steps": 1})
    origin = {"name": "b", "licence": "MIT", "checkpoint": str(tmp_path / "base")}
    given = {
        "base": origin,
        "encoder": {},
        "heads": {},
        "optimization.dropout": 0.0,
        "optimization.learning_rate": 0.003,
    }
    run("free", given)
    run("held", {**given, "losses.anchor_dense": 1e4, "losses.anchor_colbert": 1e4})
    before = encode(load_encoder(str(tmp_path / "base"), "torch"), TEXTS, "document").dense
    cosines = {}
    for name in ("free", "held"):
        state = torch.load(tmp_path / name / "run" / "state.pt", weights_only=True)["weights"]
        encoder = load_encoder(str(tmp_path / name), "torch")
        encoder._model.load_state_dict(state, strict=False)  # type: ignore[attr-defined]  # the last weights
        after = encode(encoder, TEXTS, "document").dense
        assert before is not None
        assert after is not None
        cosines[name] = float((before * after).sum(axis=1).min())
    assert cosines["held"] > 0.995 > cosines["free"]


@pytest.mark.slow
def test_the_anchor_of_an_adapter_is_the_base_without_it(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("peft", reason="adapters are trained with peft: install tercet[train]")
    run("base", {"optimization.steps": 1})
    origin = {"name": "b", "licence": "MIT", "checkpoint": str(tmp_path / "base")}
    adapter = {"kind": "prefix", "prefix": {"length": 3}}
    given = {"base": origin, "encoder": {}, "heads": {}, "optimization.dropout": 0.0, "optimization.steps": 1}
    run("prefix", {**given, **ANCHORS, "adapter": adapter})
    # A prefix takes attention from the first step on, so that vectors are not the base's any more.
    assert losses_of(tmp_path / "prefix")[0]["anchor_dense"] > 1e-5


def stage_of(settings: RunSettings, tmp_path: Path, name: str) -> Finetune:
    """The stage with anchors at a base that is not the model, both without dropout."""
    work = tmp_path / name
    (work / "tokens-0").mkdir(parents=True)
    torch.manual_seed(3)
    base = open_base(settings, work, "cpu", Ranks())
    anchor = deepcopy(base.model) if settings.losses.anchored else None
    stage, _ = finetuning(settings, base, tmp_path / "data", work, "cpu", Ranks(), anchor)
    with torch.no_grad():
        for parameter in base.model.parameters():
            parameter += 0.05 * torch.randn(parameter.shape)
    base.model.eval()
    assert isinstance(stage, Finetune)
    return stage


def test_anchors_have_the_same_gradients_with_and_without_caching(
    settings_of: SettingsOf, tmp_path: Path
) -> None:
    found = []
    for cached in (False, True):
        anchors = {"losses.anchor_dense": 2.0, "losses.anchor_colbert": 3.0}
        stage = stage_of(settings_of({**anchors, "batches.gradient_cache": cached}), tmp_path, str(cached))
        report = stage.accumulate(0, lambda loss: loss)
        model = stage.encoder.model
        gradients = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
        found.append((report, gradients))
    (plain, expected), (cached_report, gradients) = found
    assert float(plain.losses["anchor_dense"]) > 1e-4
    assert next(iter(plain.losses)) == "loss"
    for name, loss in plain.losses.items():
        assert float(cached_report.losses[name]) == pytest.approx(float(loss), abs=1e-6)
    terms = plain.losses
    whole = sum(float(terms[name]) for name in ("dense", "sparse", "colbert"))
    whole += sum(float(terms[f"distill_{name}"]) for name in ("dense", "sparse", "colbert")) / 3
    whole += 2 * float(terms["anchor_dense"]) + 3 * float(terms["anchor_colbert"])
    assert float(terms["loss"]) == pytest.approx(whole, abs=1e-5)
    assert set(gradients) == set(expected)
    for name, gradient in expected.items():
        torch.testing.assert_close(gradients[name], gradient, rtol=1e-5, atol=1e-5)


def test_the_weight_of_a_source_is_a_factor_of_its_gradients(settings_of: SettingsOf, tmp_path: Path) -> None:
    """Of what its pairs say alone; what holds on to the base has a factor of its own."""
    found = []
    for weight in (1.0, 2.5):
        sources = [{**settings_of({}).data.sources[0].model_dump(exclude_none=True), "weight": weight}]
        stage = stage_of(settings_of({"data.sources": sources}), tmp_path, str(weight))
        report = stage.accumulate(0, lambda loss: loss)
        gradients = {n: p.grad for n, p in stage.encoder.model.named_parameters() if p.grad is not None}
        found.append((report.losses, gradients))
    (plain, expected), (weighted, gradients) = found
    assert float(weighted["loss"]) == pytest.approx(2.5 * float(plain["loss"]), rel=1e-5)
    assert float(weighted["dense"]) == pytest.approx(float(plain["dense"]), rel=1e-5)
    for name, gradient in expected.items():
        torch.testing.assert_close(gradients[name], 2.5 * gradient, rtol=1e-4, atol=1e-5)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of parts of every step that caches its gradients."""
    found: list[int] = []
    cached_backward = tercet.training.m3.finetune.cached_backward

    def counted(parts: Any, *rest: Any, **options: Any) -> None:
        found.append(len(parts))
        cached_backward(parts, *rest, **options)

    monkeypatch.setattr(tercet.training.m3.finetune, "cached_backward", counted)
    return found


def test_gradients_are_cached_exactly_where_a_step_exceeds_a_pass(
    settings_of: SettingsOf, tmp_path: Path, calls: list[int]
) -> None:
    # Eight queries of 4 tokens and eight passages of 8 tokens: 96 padded tokens.
    for tokens, given, expected in (
        (96, None, []),
        (95, None, [2]),
        (40, None, [3]),
        (96, True, [2]),
        (40, False, []),
    ):
        calls.clear()
        changes = {"batches.sub_batch_tokens": tokens, "batches.gradient_cache": given}
        stage = stage_of(settings_of(changes), tmp_path, f"{tokens}-{given}")
        assert stage.accumulate(0, lambda loss: loss).tokens == 96
        assert calls == expected, (tokens, given)


@pytest.mark.parametrize(("given", "expected"), [(None, []), (True, [3])])
def test_a_frozen_body_needs_no_caching_but_may_have_it(
    settings_of: SettingsOf,
    tmp_path: Path,
    calls: list[int],
    given: bool | None,
    expected: list[int],
) -> None:
    cached = {"batches.sub_batch_tokens": 40, "batches.gradient_cache": given}
    stage = stage_of(settings_of({**cached, "optimization.frozen_body": True}), tmp_path, "frozen")
    assert stage.accumulate(0, lambda loss: loss).tokens == 96
    assert calls == expected


def test_dropout_of_the_body_can_be_set(settings_of: SettingsOf, tmp_path: Path) -> None:
    for given, expected in ((None, {0.1}), (0.0, {0.0}), (0.3, {0.3})):
        settings = settings_of({"optimization.dropout": given})
        model = open_base(settings, tmp_path, "cpu", Ranks()).model.train()
        found = {module.p for module in model.body.modules() if isinstance(module, torch.nn.Dropout)}
        assert found == expected
        ids = torch.tensor([[2, 5, 6, 7, 3]])
        with torch.no_grad():
            states = [model.hidden(ids, torch.ones_like(ids)) for _ in range(2)]
        assert torch.equal(*states) == (given == 0.0)


@pytest.mark.slow
def test_without_dropout_a_step_gives_what_evaluation_gives(run: Run, tmp_path: Path) -> None:
    run("still", {"optimization.dropout": 0.0, "optimization.steps": 2})
    run("again", {"optimization.dropout": 0.0, "optimization.steps": 2, "batches.sub_batch_tokens": 10_000})
    first, second = (losses_of(tmp_path / name) for name in ("still", "again"))
    np.testing.assert_allclose([step["loss"] for step in first], [step["loss"] for step in second], atol=1e-4)
