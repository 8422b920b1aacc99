"""`tercet export`, and commands that encode with a checkpoint that was never exported."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from safetensors.numpy import load_file, save_file

pytest.importorskip("torch", reason="the export needs torch: install tercet[torch]")
pytest.importorskip("onnxscript", reason="the export needs onnxscript: install tercet[torch]")

Run = Callable[..., Any]
OUTLIER = 3000.0


@pytest.fixture
def checkpoint(repository: Path, tmp_path: Path) -> Path:
    """A copy of the tiny XLM-RoBERTa of the models' tests."""
    golden = repository / "tests" / "models" / "golden" / "checkpoint"
    return Path(shutil.copytree(golden, tmp_path / "tiny"))


def write_outliers(path: Path) -> None:
    """Raises one value channel of each block and lowers what it leads to likewise: floats see no change."""
    weights = load_file(path)
    for name, values in weights.items():
        if "attention.self.value" in name:
            values[0] *= OUTLIER
        elif name.endswith("attention.output.dense.weight"):
            values[:, 0] /= OUTLIER
    save_file(weights, path, metadata={"format": "pt"})


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"model_type": "t5"}, "'t5' has an encoder and a decoder"),
        ({"model_type": "made-up", "auto_map": {}}, "code of its own, which is not run"),
        ({"model_type": "xlm-roberta", "lora_adaptations": []}, "tercet checkpoints unpack-tasks"),
        ({"model_type": "deberta-v2"}, "the weight files lack"),
        ({"num_hidden_layers": "many"}, "is not understood"),
    ],
)
def test_what_cannot_be_exported_ends_in_one_line(
    tercet: Run, checkpoint: Path, config: dict[str, Any], words: str
) -> None:
    path = checkpoint / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **config}))
    done = tercet("export", str(checkpoint), "--output", "out")
    assert done.returncode == 1
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.slow
def test_int8_that_loses_much_is_told_by_side(tercet: Run, checkpoint: Path) -> None:
    """A channel far above the others takes all levels of each token, as outliers of large models do."""
    done = tercet("export", str(checkpoint), "--output", "fine", "--int8", "--json")
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr
    fine = json.loads(done.stdout)["kept"]
    assert min(fine.values()) > 0.97

    write_outliers(checkpoint / "model.safetensors")
    done = tercet("export", str(checkpoint), "--output", "poor", "--int8", "--json")
    assert done.returncode == 0, done.stderr
    poor = json.loads(done.stdout)["kept"]
    assert f"the mean cosine of token vectors is {poor['colbert']:.3f}, and 0.97 or more" in done.stderr
    assert done.stderr.count("Warning: int8 differs much from float32") == sum(
        poor[side] < least for side, least in (("dense", 0.98), ("sparse", 0.9), ("colbert", 0.97))
    )
    done = tercet("export", str(checkpoint), "--output", "poor")
    assert "Warning" not in done.stderr


@pytest.mark.slow
def test_without_torch_a_first_start_says_what_to_install(
    tercet_without: Run, checkpoint: Path, tmp_path: Path
) -> None:
    (tmp_path / "in.jsonl").write_text('{"text": "tea"}\n')
    arguments = ["embed", "--input", "in.jsonl", "--output", "out.safetensors"]
    done = tercet_without("torch", *arguments, "--checkpoint", str(checkpoint))
    assert done.returncode == 1
    assert done.stderr == (
        "Error: checkpoint tiny has no exported graph, and to make one needs torch: "
        "pip install -c constraints.txt -e '.[cpu,torch]'\n"
    )
