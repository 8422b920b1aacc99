"""`tercet neutralize`: what it prints, and what it refuses in one line."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="to change a checkpoint takes torch: install tercet[torch]")

Run = Callable[..., Any]


@pytest.fixture
def checkpoint(repository: Path, tmp_path: Path) -> Path:
    """A copy of the tiny XLM-RoBERTa of the models' tests, laid out as BGE-M3."""
    golden = repository / "tests" / "models" / "golden" / "checkpoint"
    return Path(shutil.copytree(golden, tmp_path / "tiny"))


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    folder = tmp_path / "texts"
    folder.mkdir()
    for language, word in (("en", "bee"), ("ko", "벌")):
        (folder / f"{language}.txt").write_text("".join(f"{word} {number}\n" for number in range(20)))
    return folder


@pytest.mark.slow
def test_it_says_what_it_took_out(tercet: Run, checkpoint: Path, texts: Path, tmp_path: Path) -> None:
    output = tmp_path / "neutral"
    done = tercet("neutralize", str(checkpoint), "--texts", str(texts), "--output", str(output))
    assert done.returncode == 0, done.stderr
    lines = dict(line.rsplit("  ", 1) for line in done.stdout.splitlines())
    found = {name.strip(): value for name, value in lines.items()}
    assert len(found.pop("fingerprint")) == 64
    assert found == {
        "checkpoint": str(output),
        "languages": "2",
        "directions out of dense vectors": "1",
        "directions out of token vectors": "1",
    }
    assert (output / "heads.safetensors").is_file()
    too_many = ("--output", str(tmp_path / "no"), "--directions", "2")
    refused = tercet("neutralize", str(checkpoint), "--texts", str(texts), *too_many)
    assert refused.returncode == 1
    assert refused.stderr.strip().endswith("have 1 to 1")
    (texts / "ko.txt").unlink()
    refused = tercet("neutralize", str(checkpoint), "--texts", str(texts), "--output", str(tmp_path / "no"))
    assert refused.returncode == 1
    assert "has texts in one language; give two at least" in refused.stderr
