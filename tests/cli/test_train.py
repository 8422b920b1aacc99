"""`tercet train` as a user runs it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import tercet.cli.progress
from tercet.cli.train import lines_of_text

Run = Callable[..., "subprocess.CompletedProcess[str]"]
WORDS = [f"word{number}" for number in range(30)]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A run over a random BERT of one layer in `base`, and eight pairs in `pairs.jsonl`."""
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    (tmp_path / "base").mkdir()
    write_base(tmp_path / "base")
    pairs = [{"query": word, "pos": [f"{word} {other}"]} for word, other in pairwise(WORDS[:9])]
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
    source = {"path": "pairs.jsonl", "title": "P", "licence": "CC0 1.0", "development_pairs": 2}
    values = {
        "name": "tiny",
        "stage": "finetune",
        "base": {"name": "random", "licence": "MIT", "checkpoint": str(tmp_path / "base")},
        "data": {"sources": [source], "query_tokens": 8, "passage_tokens": 8},
        "batches": {"groups": [{"tokens": 8, "batch": 3}]},
        "heads": {"colbert_dimension": 4},
        "optimization": {"steps": 3, "learning_rate": 0.01},
        "evaluate_steps": 2,
    }
    path = tmp_path / "run.json"
    path.write_text(json.dumps(values))
    return path


def write_base(folder: Path) -> None:
    """A checkpoint without heads, over whole words."""
    from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers, processors
    from transformers import BertConfig, BertModel

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer = Tokenizer(
        models.WordLevel({w: i for i, w in enumerate([*special, *WORDS])}, unk_token="[UNK]")
    )
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair=None, special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in special])
    (folder / "tokenizer.json").write_text(tokenizer.to_str())
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    BertModel(BertConfig(vocab_size=35, max_position_embeddings=16, **sizes)).save_pretrained(folder)


def change(config: Path, **values: Any) -> None:
    config.write_text(json.dumps({**json.loads(config.read_text()), **values}))


def test_help_names_what_it_takes(tercet: Run) -> None:
    result = tercet("train", "--help")
    assert result.returncode == 0
    for option in ("CONFIG", "--data", "--output", "--threads", "--json", "torchrun"):
        assert option in result.stdout


@pytest.mark.slow
def test_a_run_reports_and_writes_a_checkpoint_that_embeds(tercet: Run, config: Path, tmp_path: Path) -> None:
    result = tercet("train", str(config), "--threads", "1")
    assert result.returncode == 0, result.stderr
    assert result.stdout == "Wrote trained/tiny\n"
    assert "step 0: held-out nDCG@10\n  P: dense" in result.stderr
    assert "step 3/3  loss " in result.stderr
    assert "tokens/s" in result.stderr
    assert "Writing model shards" not in result.stderr
    texts, arrays = tmp_path / "texts.jsonl", tmp_path / "arrays.safetensors"
    texts.write_text('{"text": "word1 word2"}\n')
    places = ["--input", str(texts), "--output", str(arrays)]
    served = tercet("embed", *places, "--checkpoint", "trained/tiny", "--engine", "torch")
    assert served.returncode == 0, served.stderr
    assert arrays.stat().st_size > 0


def test_a_run_that_improves_nothing_says_so(tercet: Run, config: Path) -> None:
    change(config, optimization={"steps": 2, "learning_rate": 1e-12})
    result = tercet("train", str(config), "--threads", "1")
    assert result.returncode == 0, result.stderr
    assert "No evaluation beat the weights that the run began with, so these were kept." in result.stderr


@pytest.mark.slow
def test_lines_of_json(tercet: Run, config: Path, tmp_path: Path) -> None:
    result = tercet("train", str(config), "--threads", "1", "--output", str(tmp_path / "out"), "--json")
    assert result.returncode == 0, result.stderr
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert [line["step"] for line in lines] == [0, 1, 2, 2, 3, 3]
    assert all(line["steps"] == 3 for line in lines)
    assert {"losses", "gradient_norm", "learning_rate", "tokens", "seconds"} <= set(lines[1])
    assert set(lines[0]["development"]["P"]) == {"dense", "sparse", "colbert", "sum"}
    logged = (tmp_path / "out" / "run" / "log.jsonl").read_text().splitlines()
    assert [{**json.loads(line), "steps": 3} for line in logged] == lines


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"stepss": 3}, "stepss: unknown setting (known are"),
        ({"optimization": {"steps": 3}}, "optimization.learning_rate: this setting is required"),
        (
            {"optimization": {"learning_rate": 1, "steps": "3"}},
            'optimization.steps: expected a whole number, found "3"',
        ),
        ({"seed": -1}, "seed: it is -1, but must be at least 0"),
        (
            {"base": {"name": "b", "licence": "MIT", "checkpoint": "/nowhere"}},
            "checkpoint '/nowhere' is neither",
        ),
        (
            {"batches": {"groups": [{"tokens": 8, "batch": 30}]}},
            "pairs.jsonl: fills no whole batch; lower batches.groups",
        ),
    ],
)
def test_a_bad_setting_is_one_line(tercet: Run, config: Path, values: dict[str, Any], message: str) -> None:
    change(config, **values)
    result = tercet("train", str(config), "--threads", "1")
    assert result.returncode == 1
    lines = [
        line for line in result.stderr.splitlines() if "step 0" not in line and not line.startswith("  ")
    ]
    assert lines[-1].startswith("Error: ")
    assert message in lines[-1]
    assert "Traceback" not in result.stderr


def test_a_bad_line_and_missing_files_are_named(tercet: Run, config: Path, tmp_path: Path) -> None:
    with (tmp_path / "pairs.jsonl").open("a") as file:
        file.write("{\n")
    result = tercet("train", str(config), "--threads", "1")
    assert (result.returncode, result.stderr.count("\n")) == (1, 1)
    assert f"{tmp_path}/pairs.jsonl:9: not JSON" in result.stderr
    result = tercet("train", "absent.toml")
    assert (result.returncode, result.stderr.count("\n")) == (1, 1)
    assert "absent.toml: cannot be read" in result.stderr
    result = tercet("train", str(config), "--data", "elsewhere")
    assert result.returncode == 1
    assert "elsewhere/pairs.jsonl: cannot be read" in result.stderr
    assert "start from elsewhere, and --data names another folder" in result.stderr


@pytest.mark.slow
@pytest.mark.parametrize("missing", ["torch", "matplotlib"])
def test_a_missing_extra_says_how_to_get_it(tercet_without: Run, config: Path, missing: str) -> None:
    result = tercet_without(missing, "train", str(config))
    assert result.returncode == 1
    assert "pip install -c constraints.txt -e '.[cpu,torch,train]'" in result.stderr
    assert missing in result.stderr
    assert "Traceback" not in result.stderr


def test_lines_off_a_terminal_come_at_an_interval(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 0.0
    monkeypatch.setattr(tercet.cli.progress.time, "monotonic", lambda: now)
    report = lines_of_text()
    report({"step": 20, "steps": 40, "development": {"P": {"dense": 0.5}}})
    for step in range(21, 41):  # resumed at step 20; a step takes two seconds
        now += 2.0
        losses = {"losses": {"loss": 1.0}, "tokens": 1000, "seconds": 2.0}
        report({"step": step, "steps": 40, **losses})
    written = capsys.readouterr().err.splitlines()
    assert written[:2] == ["step 20: held-out nDCG@10", "  P: dense 0.5000"]
    assert written[2] == "step 21/40  loss 1.000, 500 tokens/s, 1,000 tokens, 38 s left"
    assert written[3] == "step 24/40  loss 1.000, 500 tokens/s, 4,000 tokens, 32 s left"
    assert written[-1] == "step 40/40  loss 1.000, 500 tokens/s, 20,000 tokens"
    assert [int(line.split("/")[0][5:]) for line in written[2:]] == [21, 24, 27, 30, 33, 36, 39, 40]
