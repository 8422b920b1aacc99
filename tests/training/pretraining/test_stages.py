"""Pre-training runs: what they learn and leave behind, sub-batches, going on after a cut, two processes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from tercet.models.loader import load_encoder
from tercet.training.data.document_batches import DocumentBatches
from tercet.training.data.text_table import read_text_table
from tercet.training.distributed import Ranks
from tercet.training.errors import ConfigError
from tercet.training.pretraining.retromae import RetroMaeInputs
from tercet.training.run import pretraining
from tercet.training.runs.base import open_base
from tercet.training.runs.log import read_log
from tercet.training.settings.run import RunSettings
from tercet.training.step import StepReport

STAGES: dict[str, dict[str, Any]] = {
    "mlm": {"stage": "mlm"},
    "basic": {"stage": "retromae", "pretraining.decoding": "basic"},
    "enhanced": {"stage": "retromae", "pretraining.decoder_layers": 2},
    "condenser": {"stage": "condenser"},
    "cocondenser": {"stage": "cocondenser", "pretraining.span_tokens": 5, "pretraining.span_weight": 0.5},
}
TERMS = {
    "mlm": {"mlm"},
    "basic": {"encoder_mlm", "decoder"},
    "enhanced": {"encoder_mlm", "decoder"},
    "condenser": {"late_mlm", "head_mlm"},
    "cocondenser": {"late_mlm", "head_mlm", "spans"},
}
CHANGES = {
    "architecture": {"layers": 2, "width": 16, "attention_heads": 2, "intermediate": 32, "positions": 32},
    "data": {
        "passage_tokens": 16,
        "sources": [{"path": "pairs.jsonl", "title": "P", "licence": "CC0 1.0", "format": "texts"}],
    },
    "batches": {"groups": [{"tokens": 16, "batch": 8}], "sub_batch_tokens": 64},
    "optimization.learning_rate": 0.02,
    "losses": None,
    "heads": None,
    "batches.negatives": None,
    "data.query_tokens": None,
}
Run = Callable[..., Any]
Changed = Callable[[dict[str, Any]], RunSettings]


def steps_of(folder: Path) -> list[dict[str, float]]:
    return [line["losses"] for line in read_log(folder / "run") if "losses" in line]


@pytest.mark.slow
@pytest.mark.parametrize("name", list(STAGES))
def test_losses_fall_and_fine_tuning_goes_on_from_the_checkpoint(run: Run, tmp_path: Path, name: str) -> None:
    run("pre", {**CHANGES, **STAGES[name], "optimization.steps": 40})
    steps = steps_of(tmp_path / "pre")
    assert set(steps[0]) == {"loss", *TERMS[name]}
    for term in steps[0]:
        first, last = (np.mean([step[term] for step in part]) for part in (steps[:8], steps[-8:]))
        assert last < first, term
    factors = {"spans": 0.5}
    for step in steps:
        parts = [factors.get(term, 1.0) * value for term, value in step.items() if term != "loss"]
        assert step["loss"] == pytest.approx(sum(parts), abs=1e-5)

    files = {path.name for path in (tmp_path / "pre").iterdir() if path.is_file()}
    assert files == {"README.md", "config.json", "model.safetensors", "tercet.json", "tokenizer.json"}
    start = load_file(tmp_path / "pre" / "run" / "base-0" / "model.safetensors")
    body = load_file(tmp_path / "pre" / "model.safetensors")
    assert set(body) == set(start)
    assert not any(torch.equal(body[key], start[key]) for key in body)
    card = (tmp_path / "pre" / "README.md").read_text()
    assert "| P | CC0 1.0 | 40 documents | 0 |" in card
    assert "Texts were cut at 16 tokens. What occurs" in card

    base = {"name": "pre", "licence": "MIT", "checkpoint": str(tmp_path / "pre")}
    run("fine", {"base": base, "encoder": {}, "optimization.steps": 2})
    assert load_encoder(str(tmp_path / "fine"), "torch").info.dense_dimension == 16


def of_a_step(
    settings: RunSettings, folder: Path, data: Path, step: int
) -> tuple[StepReport, dict[str, torch.Tensor]]:
    """The losses of a step, without dropout, and its gradients."""
    work = folder / str(settings.batches.sub_batch_tokens)
    (work / "tokens-0").mkdir(parents=True)
    torch.manual_seed(3)
    base = open_base(settings, work, "cpu", Ranks())
    stage, _, model = pretraining(settings, base, data, work, "cpu", Ranks())
    model.eval()
    report = stage.accumulate(step, lambda loss: loss)
    return report, {name: p.grad for name, p in model.named_parameters() if p.grad is not None}


@pytest.mark.slow
@pytest.mark.parametrize("name", list(STAGES))
def test_sub_batches_equal_the_whole_batch(settings_of: Changed, tmp_path: Path, name: str) -> None:
    # Documents of other lengths, so that sub-batches are padded otherwise than the whole batch.
    lines = [" ".join(f"word{(n * 7 + k) % 40}" for k in range(5 + n % 6)) for n in range(8)]
    (tmp_path / "data" / "texts.txt").write_text("\n".join(lines))
    source = {"path": "texts.txt", "title": "T", "licence": "CC0 1.0", "format": "texts"}
    found = []
    for tokens in (10_000, 40, 8):
        changes = {**CHANGES, **STAGES[name], "data.sources": [source], "batches.sub_batch_tokens": tokens}
        found.append(of_a_step(settings_of(changes), tmp_path, tmp_path / "data", 3))
    (whole, gradients), *others = found
    assert max(float(gradient.abs().max()) for gradient in gradients.values()) > 1e-3
    for report, cut in others:
        assert report.tokens == whole.tokens
        assert set(report.losses) == set(whole.losses)
        for term, loss in whole.losses.items():
            assert float(report.losses[term]) == pytest.approx(float(loss), abs=1e-5), term
        assert set(cut) == set(gradients)
        for key, gradient in gradients.items():
            torch.testing.assert_close(cut[key], gradient, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("decoding", ["basic", "enhanced"])
def test_the_ratios_are_those_of_the_settings(settings_of: Changed, tmp_path: Path, decoding: str) -> None:
    # Six words a document: the share of them that is hidden can be counted.
    for number, (encoder_ratio, decoder_ratio) in enumerate([(1 / 6, 5 / 6), (1 / 2, 1 / 6)]):
        ratios = {"encoder_ratio": encoder_ratio, "decoder_ratio": decoder_ratio}
        changes = {**CHANGES, "stage": "retromae", "pretraining": {"decoding": decoding, **ratios}}
        work = tmp_path / str(number)
        (work / "tokens-0").mkdir(parents=True)
        settings = settings_of({**changes, "batches.sub_batch_tokens": 10_000})
        base = open_base(settings, work, "cpu", Ranks())
        stage, _, model = pretraining(settings, base, tmp_path / "data", work, "cpu", Ranks())
        seen: list[RetroMaeInputs] = []
        model.register_forward_pre_hook(lambda module, given, seen=seen: seen.append(given[0]))  # type: ignore[misc]
        stage.accumulate(0, lambda loss: loss)
        (inputs,) = seen
        assert inputs.encoder.predicted == round(8 * 6 * encoder_ratio)
        if inputs.sample is None:
            assert inputs.decoder.predicted == round(8 * 6 * decoder_ratio)
            continue
        others = ~torch.eye(8, dtype=torch.bool)
        others[:, 0] = False  # the embedding, which all see
        hidden = (~inputs.sample.visible(slice(0, 8))[:, others]).float().mean().item()
        assert hidden == pytest.approx(decoder_ratio, abs=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(STAGES))
def test_what_predicts_warms_up_on_a_frozen_body(run: Run, tmp_path: Path, name: str) -> None:
    rates = {"optimization.learning_rate": 1e-9, "optimization.heads_learning_rate": 0.02}
    changes = {**CHANGES, **STAGES[name], **rates, "optimization.head_warmup_steps": 3, "save_steps": 1}
    run("warm", {**changes, "optimization.steps": 3})
    start = load_file(tmp_path / "warm" / "run" / "base-0" / "model.safetensors")
    weights = torch.load(tmp_path / "warm" / "run" / "state.pt", weights_only=True)["weights"]
    assert all(torch.equal(weights[f"body.{key}"], tensor) for key, tensor in start.items())
    # At its own rate all that is no body has moved far from where it was drawn: a bias from 0.
    moved = [tensor for key, tensor in weights.items() if key.endswith("bias") and "body." not in key]
    assert moved
    assert max(float(tensor.abs().max()) for tensor in moved) > 0.01


class KilledError(Exception):
    """Stands for a kill: nothing of the run is left but its folder."""


@pytest.mark.slow
@pytest.mark.parametrize("name", list(STAGES))
def test_a_run_that_was_cut_off_goes_on_with_the_same_losses(run: Run, tmp_path: Path, name: str) -> None:
    changes = {**CHANGES, **STAGES[name], "optimization.steps": 12}
    run("whole", changes)

    def kill(line: dict[str, Any]) -> None:
        if line["step"] == 7:
            raise KilledError

    with pytest.raises(KilledError):
        run("cut", changes, kill)
    assert torch.load(tmp_path / "cut" / "run" / "state.pt", weights_only=True)["step"] == 4
    run("cut", changes)
    assert steps_of(tmp_path / "cut") == steps_of(tmp_path / "whole")
    weights = [(tmp_path / folder / "model.safetensors").read_bytes() for folder in ("cut", "whole")]
    assert weights[0] == weights[1]


def test_a_body_without_early_layers_is_a_setting_at_fault(run: Run) -> None:
    changes = {**CHANGES, "stage": "condenser", "pretraining.early_layers": 2}
    with pytest.raises(ConfigError, match=r"^pretraining\.early_layers: early_layers is 2 of 2 layers"):
        run("out", changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": "pairs"}, r'format: expected one of "texts", found "pairs"'),
        ({"train": False}, r"train: not read in stage retromae"),
        ({"development_pairs": 3}, r"development_pairs: not read in stage retromae"),
        ({"join_up_to": 3}, r"join_up_to: not read in stage retromae"),
    ],
)
def test_sources_that_pre_training_cannot_use_are_refused(
    settings_of: Changed, changes: dict[str, Any], message: str
) -> None:
    source = {"path": "p.jsonl", "title": "P", "licence": "MIT", "format": "texts", **changes}
    with pytest.raises(ConfigError, match=rf"^data\.sources\[0\]\.{message}"):
        settings_of({**CHANGES, "stage": "retromae", "data.sources": [source]})


def test_random_numbers_depend_on_seed_step_device_and_stream(settings_of: Changed, tmp_path: Path) -> None:
    settings = settings_of({**CHANGES, "stage": "retromae"})
    tokenizer = open_base(settings, tmp_path, "cpu", Ranks()).tokenizer
    stores = read_text_table(settings.data, tmp_path / "data", tmp_path, tokenizer, settings.seed)

    def drawn(rank: int, step: int, stream: int) -> int:
        return DocumentBatches(stores, settings, Ranks(rank, 2), 4).seed(step, stream)

    places = [(rank, step, stream) for rank in range(2) for step in range(3) for stream in range(2)]
    assert len({drawn(*place) for place in places}) == len(places)
    assert drawn(1, 2, 1) == drawn(1, 2, 1)


def test_devices_share_a_step_and_an_epoch_reads_every_document(settings_of: Changed, tmp_path: Path) -> None:
    settings = settings_of({**CHANGES, "stage": "retromae", "batches.groups": [{"tokens": 16, "batch": 4}]})
    tokenizer = open_base(settings, tmp_path, "cpu", Ranks()).tokenizer
    stores = read_text_table(settings.data, tmp_path / "data", tmp_path, tokenizer, settings.seed)
    one, *two = (DocumentBatches(stores, settings, ranks, 4) for ranks in (Ranks(), Ranks(0, 2), Ranks(1, 2)))
    assert (one.steps_per_epoch, two[0].steps_per_epoch) == (10, 5)
    for batches in ([one], two):
        rows = [
            tuple(texts.take(np.array([row])).token_ids.tolist())
            for step in range(batches[0].steps_per_epoch)
            for texts in (device.documents(step) for device in batches)
            for row in range(len(texts))
        ]
        assert len(rows) == 40
        assert set(rows) == {tuple(stores[0].take(np.array([row])).token_ids.tolist()) for row in range(40)}
    first, again = one.documents(0), one.documents(10)
    assert first.token_ids.tolist() != again.token_ids.tolist()
