"""A base with heads, and runs that train adapters for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]


@pytest.fixture
def base(run: Run, tmp_path: Path) -> Path:
    """The tiny base with heads."""
    run("base", {"optimization.steps": 1})
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
