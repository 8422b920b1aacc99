"""Whole tiny runs: base package to checkpoint that the torch engine loads."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import tercet.training.run
from tercet.models.checkpoint import EncodingSettings
from tercet.models.encoder import encode
from tercet.models.loader import load_encoder
from tercet.models.tokenizer import Tokenizer
from tercet.models.weights.head_weights import read_heads
from tercet.training.distributed import Ranks
from tercet.training.errors import ConfigError, DivergedError
from tercet.training.m3.development import ndcg
from tercet.training.runs.base import open_base, written_out_attention
from tercet.training.runs.log import read_log
from tercet.training.runs.state import Progress
from tercet.training.settings.optimization import Precision

pytestmark = pytest.mark.slow

SettingsOf = Callable[[dict[str, Any]], Any]
Run = Callable[..., Progress]


def losses(folder: Path) -> list[float]:
    return [line["losses"]["loss"] for line in read_log(folder / "run") if "losses" in line]


def body_of(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model.safetensors")


def unchanged(before: dict[str, torch.Tensor], after: dict[str, torch.Tensor]) -> set[str]:
    return {name for name in after if torch.equal(before[name], after[name])}


def test_a_run_improves_and_its_checkpoint_gives_the_development_figure(
    run: Run, tmp_path: Path, base_folder: Path
) -> None:
    progress = run("out")
    lines = list(read_log(tmp_path / "out" / "run"))
    figures = {line["step"]: line["development"]["Made pairs"] for line in lines if "development" in line}
    assert [line["step"] for line in lines if "losses" in line] == list(range(1, 13))
    assert list(figures) == [0, 4, 8, 12]
    sums = {step: sides["sum"] for step, sides in figures.items()}
    assert progress.best_figure == max(sums.values()) > sums[0]
    assert sums[progress.best_step] == progress.best_figure
    assert not unchanged(body_of(base_folder), body_of(tmp_path / "out"))

    # The eight held-out pairs by the engine that serves: found again as those that make the figure.
    encoder = load_encoder(str(tmp_path / "out"), "torch")
    held_out = held_out_pairs(tmp_path)
    queries = encode(encoder, [pair["query"] for pair in held_out], "query")
    passages = encode(encoder, [pair["pos"][0] for pair in held_out], "document")
    assert queries.dense is not None
    assert passages.dense is not None
    dense = ndcg(queries.dense @ passages.dense.T, np.eye(8, dtype=np.bool_), 10)
    assert dense == pytest.approx(figures[progress.best_step]["dense"], abs=1e-6)


def held_out_pairs(folder: Path) -> list[dict[str, Any]]:
    """The pairs that the tiny settings hold out: the first eight places of the shuffled file."""
    pairs = [json.loads(line) for line in (folder / "data" / "pairs.jsonl").read_text().splitlines()]
    order = np.random.default_rng(5).permutation(len(pairs))
    return [pairs[place] for place in sorted(order[:8])]


def test_the_best_step_is_kept(run: Run, tmp_path: Path) -> None:
    # After the first steps a learning rate this large only spoils the body.
    progress = run("spoilt", {"optimization.learning_rate": 0.2, "evaluate_steps": 1})
    lines = list(read_log(tmp_path / "spoilt" / "run"))
    sums = [line["development"]["Made pairs"]["sum"] for line in lines if "development" in line]
    assert progress.best_step == int(np.argmax(sums)) < 12
    again = run("short", {"optimization.learning_rate": 0.2, "evaluate_steps": 1})
    assert again == progress
    kept, other = body_of(tmp_path / "spoilt"), body_of(tmp_path / "short")
    assert unchanged(kept, other) == set(kept)
    state = torch.load(tmp_path / "spoilt" / "run" / "state.pt", weights_only=True)
    last = {name.removeprefix("body."): weight for name, weight in state["weights"].items()}
    assert unchanged(last, {name: kept[name] for name in kept if name in last}) != set(kept)


def test_without_held_out_pairs_the_last_weights_are_kept(run: Run, tmp_path: Path) -> None:
    source = {"path": "pairs.jsonl", "title": "All", "licence": "CC0 1.0"}
    progress = run("out", {"data.sources": [source], "optimization.steps": 2})
    assert progress == Progress(2, None, 0)
    state = torch.load(tmp_path / "out" / "run" / "state.pt", weights_only=True)
    for name, weight in body_of(tmp_path / "out").items():
        assert torch.equal(state["weights"][f"body.{name}"], weight)


def test_warming_up_the_heads_leaves_the_body_as_it_was(run: Run, tmp_path: Path, base_folder: Path) -> None:
    before = body_of(base_folder)
    warm = {"optimization.head_warmup_steps": 3, "optimization.steps": 3, "save_steps": 1}
    run("warm", {**warm, "optimization.weight_decay": 0.5})
    after = torch.load(tmp_path / "warm" / "run" / "state.pt", weights_only=True)["weights"]
    assert all(torch.equal(after[f"body.{name}"], before[name]) for name in body_of(tmp_path / "warm"))
    run("longer", {**warm, "optimization.steps": 4})
    after = torch.load(tmp_path / "longer" / "run" / "state.pt", weights_only=True)["weights"]
    assert not any(
        torch.equal(after[f"body.{name}"], before[name])
        for name in body_of(tmp_path / "longer")
        if "key.bias" not in name
    )


def test_a_frozen_body_never_trains(run: Run, tmp_path: Path, base_folder: Path) -> None:
    progress = run("frozen", {"optimization.frozen_body": True, "optimization.weight_decay": 0.5})
    after = body_of(tmp_path / "frozen")
    assert unchanged(body_of(base_folder), after) == set(after)
    assert progress.best_step > 0
    state = torch.load(tmp_path / "frozen" / "run" / "state.pt", weights_only=True)
    assert set(state["weights"]) == {"heads.sparse.weight", "heads.sparse.bias"} | {
        "heads.colbert.weight",
        "heads.colbert.bias",
    }


@pytest.mark.parametrize(
    "changes",
    [
        {"batches.sub_batch_tokens": 10_000},
        {"batches.gradient_cache": True},
        {"batches.gradient_checkpointing": True},
        {"batches.gradient_cache": True, "batches.gradient_checkpointing": True},
    ],
    ids=["one batch", "cached", "checkpointed", "both"],
)
def test_how_memory_is_saved_changes_no_loss(
    run: Run, tmp_path: Path, base_folder: Path, changes: dict[str, Any]
) -> None:
    # Without dropout, which draws other numbers for batches of another shape.
    config = json.loads((base_folder / "config.json").read_text())
    config |= {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    (base_folder / "config.json").write_text(json.dumps(config))
    run("plain", {"optimization.steps": 4})
    run("saving", {"optimization.steps": 4, **changes})
    assert losses(tmp_path / "saving") == pytest.approx(losses(tmp_path / "plain"), abs=1e-4)


@pytest.mark.parametrize(
    "changes",
    [{"batches.gradient_cache": True}, {"batches.gradient_checkpointing": True}],
    ids=["cached", "checkpointed"],
)
def test_dropout_is_repeated_where_something_is_computed_again(
    run: Run, tmp_path: Path, changes: dict[str, Any]
) -> None:
    run("plain", {"optimization.steps": 4})
    run("saving", {"optimization.steps": 4, **changes})
    assert losses(tmp_path / "saving") == pytest.approx(losses(tmp_path / "plain"), abs=1e-3)


def test_gradient_checkpointing_reaches_every_layer(tmp_path: Path, settings_of: SettingsOf) -> None:
    run_settings, asked = settings_of({}), settings_of({"batches.gradient_checkpointing": True})
    for settings, expected in ((run_settings, False), (asked, True)):
        body = open_base(settings, tmp_path, "cpu", Ranks()).model.body
        found = {m.gradient_checkpointing for m in body.modules() if hasattr(m, "gradient_checkpointing")}
        assert expected in found
        assert body.is_activation_checkpointing is expected


@pytest.mark.parametrize(
    ("precision", "query_tokens", "passage_tokens", "device", "written_out"),
    [
        ("bfloat16", 256, 256, "cpu", True),
        ("bfloat16", 8, 257, "cpu", False),
        ("bfloat16", 257, 8, "cpu", False),
        ("float32", 256, 256, "cpu", False),
        ("bfloat16", 256, 256, "cuda", False),
    ],
)
def test_attention_is_written_out_for_short_texts_in_half_precision_on_a_cpu(
    settings_of: SettingsOf,
    precision: Precision,
    query_tokens: int,
    passage_tokens: int,
    device: str,
    written_out: bool,
) -> None:
    settings = settings_of(
        {
            "data.query_tokens": query_tokens,
            "data.passage_tokens": passage_tokens,
            "batches.groups": [{"tokens": 1000, "batch": 8}],
            "optimization.precision": precision,
        }
    )
    assert written_out_attention(settings, device) is written_out


@pytest.mark.parametrize(("precision", "attention"), [("bfloat16", "eager"), ("float32", "tercet_training")])
def test_the_body_gets_the_attention_chosen(
    tmp_path: Path, settings_of: SettingsOf, precision: Precision, attention: str
) -> None:
    body = open_base(settings_of({"optimization.precision": precision}), tmp_path, "cpu", Ranks()).model.body
    assert body.config._attn_implementation == attention


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_half_precisions_train_near_float32(run: Run, tmp_path: Path, precision: str) -> None:
    run("whole")
    progress = run(precision, {"optimization.precision": precision, "batches.gradient_cache": True})
    assert progress.step == 12
    assert losses(tmp_path / precision)[0] == pytest.approx(losses(tmp_path / "whole")[0], rel=0.02)
    assert {tensor.dtype for tensor in body_of(tmp_path / precision).values()} == {torch.float32}
    load_encoder(str(tmp_path / precision), "torch")


@pytest.mark.parametrize("where", ["base", "run"])
def test_an_mcls_checkpoint_is_trained_and_serves(
    run: Run, tmp_path: Path, base_folder: Path, where: str
) -> None:
    settings = {"pooling": "cls", "max_length": 32, "mcls_every": 4}
    if where == "base":
        (base_folder / "tercet.json").write_text(json.dumps(settings))
    encoding = settings if where == "run" else {}
    run("out", {"encoder": encoding, "mining": {"last": 10}, "optimization.steps": 4})
    assert json.loads((tmp_path / "out" / "tercet.json").read_text())["mcls_every"] == 4
    encoder = load_encoder(str(tmp_path / "out"), "torch")
    found = encode(encoder, ["word1 word2 word3 word4 word5 word6"], "document")
    # [CLS] 3 words [CLS] 3 words [SEP]: nine tokens, of which neither [CLS] has a vector.
    assert found.tokens.tolist() == [9]
    assert found.colbert is not None
    assert len(found.colbert.vectors) == 7


def test_the_contrastive_stage_trains_the_dense_side_alone(run: Run, tmp_path: Path) -> None:
    changes = {"stage": "contrastive", "heads": None, "mining": {"last": 8}, "evaluate_steps": 1}
    progress = run("out", changes)
    lines = list(read_log(tmp_path / "out" / "run"))
    assert {name for line in lines for name in line.get("losses", {})} == {"loss", "dense"}
    figures = [line["development"]["Made pairs"] for line in lines if "development" in line]
    assert {side for sides in figures for side in sides} == {"dense"}
    assert progress.best_figure == max(sides["dense"] for sides in figures)
    # Heads are never random, so a base without any leads to a checkpoint without any.
    assert not (tmp_path / "out" / "heads.safetensors").exists()


def test_a_text_repeated_under_dropout_is_its_own_positive(run: Run, tmp_path: Path) -> None:
    """SimCSE: -log softmax(cos / 0.5) of each of 8 texts; without dropout both encodings are those served."""
    texts = [f"word{n} word{n + 3} word{2 * n}" for n in range(8)]
    (tmp_path / "data" / "texts.txt").write_text("\n".join(texts))
    source = {"path": "texts.txt", "title": "Texts", "licence": "CC0 1.0", "format": "repeats"}
    changes = {
        "stage": "contrastive",
        "heads": None,
        "data.sources": [source],
        "losses.temperature": 0.5,
        "optimization.steps": 1,
        "optimization.learning_rate": 1e-9,  # the output is the base
    }
    run("nearly none", {**changes, "optimization.dropout": 1e-12})
    run("some", {**changes, "optimization.dropout": 0.3})

    dense = encode(load_encoder(str(tmp_path / "nearly none"), "torch"), texts).dense
    assert dense is not None
    scores = dense @ dense.T / 0.5
    expected = np.mean(np.log(np.exp(scores).sum(axis=1)) - np.diag(scores))
    assert losses(tmp_path / "nearly none") == [pytest.approx(expected, abs=1e-5)]
    assert losses(tmp_path / "some")[0] > expected + 1e-3


def test_heads_may_start_at_random(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*given: object) -> None:
        raise AssertionError("fitted")

    monkeypatch.setattr(tercet.training.run, "initial_heads", refused)
    random = {"heads": {"start": "random", "colbert_dimension": 8}, "optimization.steps": 1}
    run("random", random)
    run("again", random)
    run("other", {**random, "seed": 6})
    found = [read_heads(tmp_path / name, 16).both()[1].weight for name in ("random", "again", "other")]
    assert np.array_equal(found[0], found[1])
    assert not np.allclose(found[0], found[2], atol=0.05)
    with pytest.raises(AssertionError, match="fitted"):
        run("fitted", {"optimization.steps": 1})


def test_heads_of_another_width_replace_those_of_the_base(
    run: Run, tmp_path: Path, base_folder: Path, run_values: dict[str, Any]
) -> None:
    run("first", {"optimization.steps": 1})
    settings = tmp_path / "first" / "tercet.json"
    settings.write_text(json.dumps({**json.loads(settings.read_text()), "colbert_dimension": 8}))
    base = {"name": "first", "licence": "MIT", "checkpoint": str(tmp_path / "first")}
    with pytest.raises(ConfigError, match="heads: the base has heads, which the run goes on with"):
        run("refused", {"base": base, "optimization.steps": 1})
    run("kept", {"base": base, "optimization.steps": 1, "heads": {}})
    assert read_heads(tmp_path / "kept", 16).colbert_dimension == 8
    run("fresh", {"base": base, "optimization.steps": 1, "heads": {"fresh": True, "colbert_dimension": 4}})
    assert load_encoder(str(tmp_path / "fresh"), "torch").info.colbert_dimension == 4


def test_a_finished_run_is_not_done_again(run: Run, tmp_path: Path) -> None:
    first = run("out", {"optimization.steps": 2})
    log = (tmp_path / "out" / "run" / "log.jsonl").read_text()
    assert run("out", {"optimization.steps": 2, "save_steps": 1, "name": "renamed"}) == first
    assert (tmp_path / "out" / "run" / "log.jsonl").read_text() == log


def test_a_run_that_diverges_stops(run: Run, tmp_path: Path) -> None:
    with pytest.raises(DivergedError, match=r"step \d+: .* lower optimization.learning_rate, now 1e\+30"):
        run("out", {"optimization.learning_rate": 1e30, "optimization.clip": 0})
    for line in (tmp_path / "out" / "run" / "log.jsonl").read_text().splitlines():
        json.loads(line, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


def test_tokenizer_and_instructions_reach_the_checkpoint(run: Run, tmp_path: Path, base_folder: Path) -> None:
    changes = {"encoder.query_instruction": "word39 ", "optimization.steps": 1}
    run("out", changes)
    assert (tmp_path / "out" / "tokenizer.json").read_bytes() == (base_folder / "tokenizer.json").read_bytes()
    settings = json.loads((tmp_path / "out" / "tercet.json").read_text())
    expected = {"pooling": "mean", "max_length": 32, "query_instruction": "word39 "}
    assert {name: settings[name] for name in expected} == expected
    tokenizer = Tokenizer.load(tmp_path / "out", EncodingSettings(**settings))
    assert tokenizer.tokenize(["word0"], "query").token_ids.tolist() == [2, 44, 5, 3]


def test_the_checkpoint_may_be_read_by_anybody(run: Run, tmp_path: Path) -> None:
    run("out", {"optimization.steps": 1})
    files = [path for path in (tmp_path / "out").iterdir() if path.is_file()]
    assert {path.name for path in files} == {
        "README.md",
        "config.json",
        "heads.safetensors",
        "model.safetensors",
        "tercet.json",
        "tokenizer.json",
    }
    assert {path.stat().st_mode & 0o777 for path in files} == {0o644}


def test_frozen_embeddings_stay_as_the_base_has_them(run: Run, base_folder: Path, tmp_path: Path) -> None:
    run("frozen", {"optimization.frozen_embeddings": True})
    run("whole")
    base, frozen, whole = (
        body_of(folder) for folder in (base_folder, tmp_path / "frozen", tmp_path / "whole")
    )
    name = "embeddings.word_embeddings.weight"
    assert name in unchanged(base, frozen)
    assert name not in unchanged(base, whole)
    assert "embeddings.position_embeddings.weight" not in unchanged(base, frozen)


def test_the_last_layer_alone_may_train(run: Run, base_folder: Path, tmp_path: Path) -> None:
    run("last", {"optimization.last_layers": 1})
    before, after = body_of(base_folder), body_of(tmp_path / "last")
    assert unchanged(before, after) == {name for name in after if name.startswith("embeddings.")}
