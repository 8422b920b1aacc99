"""A base with heads, and runs that train adapters for it."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

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
