"""A base with heads, and runs that train adapters for it."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tercet.training.run
from tercet.models.encoder import encode
from tercet.models.loader import load_encoder
from tercet.models.representations import Representations
from tests.training.runs.adapters import TEXTS

Run = Callable[..., Any]


@pytest.fixture(scope="session")
def trained_bases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Bases with heads, each named for the settings that it was trained with."""
    return tmp_path_factory.mktemp("trained-bases")


@pytest.fixture
def base(run: Run, run_values: dict[str, Any], trained_bases: Path, tmp_path: Path) -> Path:
    """The tiny base with heads, of this test alone. It is trained once, and copied."""
    trained = trained_bases / hashlib.sha256(json.dumps(run_values, sort_keys=True).encode()).hexdigest()
    if not trained.exists():
        run("base", {"optimization.steps": 1})
        shutil.copytree(tmp_path / "base", trained)
    else:
        shutil.copytree(trained, tmp_path / "base")
    return tmp_path / "base"


@pytest.fixture
def adapt(run: Run, base: Path) -> Run:
    """Trains an adapter into `adapters/NAME`."""

    def adapt(
        name: str, adapter: dict[str, Any], changes: dict[str, Any] | None = None, **options: Any
    ) -> Any:
        origin = {"name": "tiny with heads", "licence": "MIT", "checkpoint": str(base)}
        own = {
            "base": origin,
            "encoder": {},
            "heads": {},
            "adapter": adapter,
            "optimization.learning_rate": 0.05,
        }
        return run(f"adapters/{name}", {**own, **(changes or {})}, **options)

    return adapt


@pytest.fixture
def in_training(monkeypatch: pytest.MonkeyPatch) -> list[Representations]:
    """What the trained model makes of `TEXTS` when its adapter is written."""
    found: list[Representations] = []
    write = tercet.training.run.write_trained_adapter

    def watched(folder: Path, model: Any, *rest: Any) -> None:
        write(folder, model, *rest)
        encoder = load_encoder(str(folder.parents[1] / "base"), "torch")
        # The engine's padded passes over the model in training: packed ones are of the one it opened. An
        # encoder has no public way to another model.
        encoder._model, encoder._packed = model, None  # type: ignore[attr-defined]
        found.append(encode(encoder, TEXTS, "document"))

    monkeypatch.setattr(tercet.training.run, "write_trained_adapter", watched)
    return found
