"""What a run is refused for: settings, data and folders that do not fit, files that are damaged."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

from tercet.models.errors import CheckpointError
from tercet.training.errors import ConfigError, RunStateError, TrainingDataError
from tercet.training.m3.teacher import Teacher
from tercet.training.runs.state import Progress
from tests.tiny.late_folders import Layer, write_pooled, write_pylate

Run = Callable[..., Progress]


def test_an_output_that_holds_another_model_stays_as_it_is(run: Run, tmp_path: Path) -> None:
    run("first", {"optimization.steps": 1})
    shutil.rmtree(tmp_path / "first" / "run")
    base = {"name": "first", "licence": "MIT", "checkpoint": str(tmp_path / "first")}
    before = {path.name: path.read_bytes() for path in (tmp_path / "first").iterdir()}
    with pytest.raises(
        RunStateError, match=r"first: holds config\.json of something that no run there has made"
    ):
        run("first", {"base": base, "optimization.steps": 1})
    assert before == {
        path.name: path.read_bytes() for path in (tmp_path / "first").iterdir() if path.is_file()
    }


@pytest.mark.parametrize("write", [write_pylate, lambda folder: write_pooled(folder, (Layer(16),))])
def test_encoders_of_other_layers_are_not_trained(
    run: Run, tmp_path: Path, write: Callable[[Path], Path]
) -> None:
    base = {"name": "late", "licence": "MIT", "checkpoint": str(write(tmp_path / "late"))}
    with pytest.raises(ConfigError, match=r"^base: encoders of ColBERT's kind and Dense modules"):
        run("out", {"base": base, "optimization.steps": 1})


def test_an_encoder_of_colbert_s_kind_is_no_teacher(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="ColBERT's kind, which does not teach here"):
        Teacher(str(write_pylate(tmp_path / "late")), 64, "float32", "cpu")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"encoder.max_length": 33},
            "encoder.max_length: it is 33, but the base has positions for 32 tokens",
        ),
        (
            {"data.passage_tokens": 40, "batches.groups": [{"tokens": 40, "batch": 8}]},
            "data.passage_tokens: it is 40",
        ),
        ({"encoder.mcls_every": 2}, "encoder: mcls_every is 2"),
        ({"heads.colbert_dimension": 17}, "heads.colbert_dimension: it is 17, but must be at most 16"),
        (
            {"losses": {"distill": False, "dense": 0.0, "sparse": 0.0, "colbert": 0.0}},
            "losses: their terms read nothing, from which nothing here learns",
        ),
        (
            {"losses": {"distill": False, "sparse": 0.0, "colbert": 0.0}, "optimization.frozen_body": True},
            "losses: their terms read dense, from which",
        ),
    ],
)
def test_settings_that_do_not_fit_the_base_are_refused(
    run: Run, tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=f"^{message}"):
        run("out", changes)
    assert not (tmp_path / "out" / "config.json").exists()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["identity.json", "negatives-0000000.npz", "log.jsonl"])
def test_a_damaged_file_of_a_run_is_named(run: Run, tmp_path: Path, name: str) -> None:
    changes = {"mining": {"last": 8}, "optimization.steps": 8, "save_steps": 4}

    def kill(line: dict[str, Any]) -> None:
        if line["step"] == 6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run("out", changes, report=kill)
    path = tmp_path / "out" / "run" / name
    path.write_bytes(b'{"step": \n')
    with pytest.raises(RunStateError, match=f"{name}.*remove"):
        run("out", changes)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "odd"),
    [
        ({"optimization.learning_rate": 0.02}, r"optimization\.learning_rate \(0\.01, now 0\.02\)"),
        ({"batches.negatives": 3}, r"batches\.negatives \(2, now 3\)"),
        ({"mining": {}}, "mining"),
    ],
)
def test_a_folder_of_other_settings_is_refused(
    run: Run, tmp_path: Path, changes: dict[str, Any], odd: str
) -> None:
    run("out", {"optimization.steps": 1})
    with pytest.raises(RunStateError, match=f"out/run: a run with other {odd} was begun there; choose"):
        run("out", {"optimization.steps": 1, **changes})


def test_a_folder_of_other_data_or_another_base_is_refused(
    run: Run, tmp_path: Path, base_folder: Path
) -> None:
    run("out", {"optimization.steps": 1})
    data = tmp_path / "data" / "pairs.jsonl"
    before = data.read_text()
    data.write_text(before.replace("word1 ", "word2 ", 1))
    with pytest.raises(RunStateError, match="a run with other data was begun there"):
        run("out", {"optimization.steps": 1})
    data.write_text(before)
    weights = load_file(base_folder / "model.safetensors")
    weights["embeddings.LayerNorm.bias"] += 1
    from safetensors.torch import save_file

    save_file(weights, base_folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(RunStateError, match="other base weights"):
        run("out", {"optimization.steps": 1, "base.sha256": ""})


def test_data_that_make_no_batch(run: Run) -> None:
    with pytest.raises(TrainingDataError, match="no whole batch"):
        run("out", {"batches.groups": [{"tokens": 16, "batch": 40}]})
    held = {"path": "pairs.jsonl", "title": "H", "licence": "CC0 1.0", "development_pairs": 40}
    with pytest.raises(TrainingDataError, match="no whole batch"):
        run("all held out", {"data.sources": [held]})
    full = {"path": "pairs.jsonl", "title": "F", "licence": "CC0 1.0"}
    with pytest.raises(TrainingDataError, match=r"^pairs\.jsonl: fills no whole batch"):
        run("one of two", {"data.sources": [full, {**full, "most": 3}]})
