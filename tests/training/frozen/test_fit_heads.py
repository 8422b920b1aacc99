"""A whole tiny run: base package to checkpoint that the torch engine loads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from models.encoder import encode
from models.head_weights import read_heads
from models.heads import Heads
from models.loader import load_encoder
from training.errors import BaseWeightsError, TrainingDataError
from training.frozen.config import FitSettings
from training.frozen.fit_heads import main, run
from training.settings_reader import settings_from


def test_a_tiny_fit_lowers_the_loss_and_writes_a_checkpoint(
    tmp_path: Path, tiny_settings: dict[str, Any]
) -> None:
    settings = settings_from(FitSettings, tiny_settings, "")
    output = tmp_path / "fitted"
    (report,) = run(settings, tmp_path / "data", tmp_path / "work", output)

    assert [epoch.number for epoch in report.epochs] == [0, 1, 2, 3, 4]
    assert report.epochs[-1].losses["total"] < 0.8 * report.epochs[1].losses["total"]
    assert report.best.figure >= report.epochs[0].figure
    assert report.training_pairs == (32,)

    encoder = load_encoder(str(output), "torch", device="cpu")
    assert encoder.info.colbert_dimension == 8
    encoded = encode(encoder, ["word1 word2"])
    assert encoded.colbert is not None
    assert encoded.colbert.vectors.shape == (3, 8)

    card = (output / "README.md").read_text()
    for fact in ("Made pairs", "CC0 1.0", settings.base.sha256, "tiny random BERT", "Apache-2.0"):
        assert fact in card


def test_the_same_settings_give_the_same_heads_from_the_hidden_states_kept(
    tmp_path: Path, tiny_settings: dict[str, Any]
) -> None:
    settings = settings_from(FitSettings, tiny_settings, "")
    run(settings, tmp_path / "data", tmp_path / "work", tmp_path / "one")
    written = {path: path.stat().st_mtime_ns for path in (tmp_path / "work").rglob("states.npy")}
    run(settings, tmp_path / "data", tmp_path / "work", tmp_path / "two")
    assert written == {path: path.stat().st_mtime_ns for path in (tmp_path / "work").rglob("states.npy")}
    one, two = read_heads(tmp_path / "one", 16), read_heads(tmp_path / "two", 16)
    for name, array in one.arrays().items():
        np.testing.assert_array_equal(array, two.arrays()[name])


def test_the_heads_of_the_best_epoch_are_kept(
    tmp_path: Path, tiny_settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Epoch 1 is told to be the best of five: its heads are those of a run that ends there."""
    figures = iter([0.1, 0.9, 0.2, 0.3, 0.4])
    kept: list[dict[str, np.ndarray]] = []

    def told(heads: Heads, *_: object) -> dict[str, dict[str, float]]:
        kept.append({name: array.copy() for name, array in heads.weights().arrays().items()})
        return {"pairs.jsonl": dict.fromkeys(("dense", "sparse", "colbert", "sum"), next(figures))}

    monkeypatch.setattr("training.frozen.fit_heads.develop", told)
    settings = settings_from(FitSettings, tiny_settings, "")
    (report,) = run(settings, tmp_path / "data", tmp_path / "work", tmp_path / "fitted")
    assert report.best.number == 1
    written = read_heads(tmp_path / "fitted", 16).arrays()
    for name, array in written.items():
        np.testing.assert_array_equal(array, kept[1][name])
    assert any((array != kept[4][name]).any() for name, array in written.items())


def test_queries_and_passages_get_their_instructions(tmp_path: Path, tiny_settings: dict[str, Any]) -> None:
    tiny_settings["encoder"] |= {"query_instruction": "word1 ", "document_instruction": "word2 "}
    settings = settings_from(FitSettings, tiny_settings, "")
    run(settings, tmp_path / "data", tmp_path / "work", tmp_path / "fitted")
    firsts = set()
    for folder in (tmp_path / "work").iterdir():
        tokens, offsets = np.load(folder / "tokens.npy"), np.load(folder / "offsets.npy")
        firsts.add(tuple(np.unique(tokens[offsets[:-1] + 1]).tolist()))
    word1, word2 = 6, 7  # after five special tokens and word0
    assert firsts == {(word1,), (word2,)}


def test_heads_of_several_fits_are_averaged(tmp_path: Path, tiny_settings: dict[str, Any]) -> None:
    (source,) = tiny_settings["data"]["sources"]
    fitted = {}
    for joins in ([1], [2], [1, 2]):
        source["join_up_to"] = joins
        output = tmp_path / "fitted" / "-".join(map(str, joins))
        reports = run(
            settings_from(FitSettings, tiny_settings, ""), tmp_path / "data", tmp_path / "work", output
        )
        assert len(reports) == len(joins)
        fitted[tuple(joins)] = read_heads(output, 16).arrays()
    for name, mean in fitted[1, 2].items():
        np.testing.assert_allclose(mean, (fitted[(1,)][name] + fitted[(2,)][name]) / 2, rtol=1e-6, atol=1e-7)
        if name.endswith("weight"):
            assert not np.allclose(fitted[(1,)][name], fitted[(2,)][name])
    assert "the mean of 2 fits" in (tmp_path / "fitted" / "1-2" / "README.md").read_text()


def test_given_negatives_take_part(tmp_path: Path, tiny_settings: dict[str, Any]) -> None:
    path = tmp_path / "data" / "pairs.jsonl"
    pairs = [json.loads(line) for line in path.read_text().splitlines()]
    lines = [json.dumps({**pair, "neg": ["word1 word2 word3"]}) for pair in pairs]
    path.write_text("\n".join(lines) + "\n")
    settings = settings_from(FitSettings, tiny_settings, "")
    (report,) = run(settings, tmp_path / "data", tmp_path / "work", tmp_path / "fitted")
    assert report.epochs[-1].losses["total"] < report.epochs[1].losses["total"]


def test_other_base_weights_are_refused(tmp_path: Path, tiny_settings: dict[str, Any]) -> None:
    tiny_settings["base"] = {**tiny_settings["base"], "sha256": "0" * 64}
    with pytest.raises(BaseWeightsError, match=r"sha256 is .*, expected 0000"):
        run(settings_from(FitSettings, tiny_settings, ""), tmp_path / "data", tmp_path, tmp_path / "fitted")
    tiny_settings["base"] = {**tiny_settings["base"], "package": "not_installed_anywhere"}
    with pytest.raises(BaseWeightsError, match="not_installed_anywhere"):
        run(settings_from(FitSettings, tiny_settings, ""), tmp_path / "data", tmp_path, tmp_path / "fitted")


def test_too_few_pairs_for_a_batch_are_an_error(tmp_path: Path, tiny_settings: dict[str, Any]) -> None:
    tiny_settings["optimization"] = {**tiny_settings["optimization"], "batch_pairs": 33}
    with pytest.raises(TrainingDataError, match="batch_pairs"):
        run(settings_from(FitSettings, tiny_settings, ""), tmp_path / "data", tmp_path, tmp_path / "fitted")


def test_the_command_says_in_one_line_why_it_failed(
    tmp_path: Path, tiny_settings: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "run.json"
    config.write_text(json.dumps({**tiny_settings, "colour": "red"}))
    code = main([str(config), "--data", str(tmp_path / "data"), "--output", str(tmp_path / "fitted")])
    assert code == 1
    assert capsys.readouterr().err.strip().startswith("colour: unknown setting")
