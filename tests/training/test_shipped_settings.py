"""The settings that ship with the project: all are valid, and the example trains an adapter that serves."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tercet.models.loader import load_encoder
from tercet.training.settings.reading import read_settings

ROOT = Path(__file__).resolve().parents[2]
FILES = [
    *sorted((ROOT / "training" / "configs").glob("*.toml")),
    *sorted((ROOT / "examples" / "train").glob("*.toml")),
]
EXAMPLE = ROOT / "examples" / "train" / "lora.toml"
# What shows that all of it works; the example's own steps take minutes, and few of them may lower figures.
FEWER = {"steps = 40": "steps = 6", "development_pairs = 60": "development_pairs = 0"}
LIMIT_SECONDS = 240
TEXTS = ["How is a sourdough starter kept alive?", "별은 어떻게 태어나는가", "mass of the moon"]


def test_there_are_settings_of_every_stage_of_the_paper() -> None:
    stages = {read_settings(path).stage for path in FILES}
    assert {"retromae", "contrastive", "finetune"} <= stages


@pytest.mark.parametrize("path", FILES, ids=[path.name for path in FILES])
def test_settings_are_valid(path: Path) -> None:
    settings = read_settings(path)
    assert all(source.licence for source in settings.data.sources)


@pytest.mark.parametrize(
    "path", [path for path in FILES if path.parent.name == "train"], ids=lambda p: p.name
)
def test_the_data_of_an_example_are_there(path: Path) -> None:
    for source in read_settings(path).data.sources:
        assert (path.parent / source.path).is_file()


def tercet(*arguments: str) -> str:
    """Runs a command in the repository's root and returns what it printed."""
    result = subprocess.run(
        [sys.executable, "-m", "tercet.cli.main", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def shortened(folder: Path) -> Path:
    """The example's settings with fewer steps."""
    text = EXAMPLE.read_text(encoding="utf-8")
    for own, fewer in FEWER.items():
        assert f"\n{own}\n" in text
        text = text.replace(f"\n{own}\n", f"\n{fewer}\n")
    path = folder / EXAMPLE.name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.slow
@pytest.mark.timeout(2 * LIMIT_SECONDS)
def test_the_example_trains_an_adapter_that_both_engines_serve(tmp_path: Path) -> None:
    pytest.importorskip("peft", reason="adapters are trained with peft: install tercet[train]")
    folder = tmp_path / "adapters" / "demo-lora"
    files = ["--data", str(EXAMPLE.parent), "--output", str(folder)]
    printed = tercet("train", str(shortened(tmp_path)), *files, "--threads", "1")
    assert printed == f"Wrote {folder}\n"

    base = load_encoder("minilm-m3", "torch", adapters=folder.parent)
    batch = base.tokenizer.tokenize(TEXTS, "query")
    plain, adapted = (base.encode_tokens(batch, adapters=[name] * 3) for name in (None, "demo-lora"))
    tercet("export", "minilm-m3", "--adapter", str(folder), "--int8")
    served = load_encoder("minilm-m3", "onnx", adapters=folder.parent)
    quantized = served.encode_tokens(batch, adapters=["demo-lora"] * 3)
    assert plain.dense is not None
    assert adapted.dense is not None
    assert quantized.dense is not None
    assert np.abs(plain.dense - adapted.dense).max() > 1e-3
    assert (adapted.dense * quantized.dense).sum(axis=1).min() > 0.97
    assert served.adapter_info("demo-lora").adapter == "demo-lora"
