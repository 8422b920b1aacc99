"""Fixtures of this folder's tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.tiny.sparse_folders import write_inference_free, write_splade

MadeOnce = Callable[[str, Callable[[Path], object]], Path]


POOLED = {"splade": ("max", "relu"), "sum": ("sum", "log1p_relu"), "free": ("max", "log1p_relu")}


@pytest.fixture(scope="session")
def folders(made_once: MadeOnce) -> dict[str, Path]:
    """A folder of each kind."""
    return {
        "splade": made_once("checkpoints/splade", write_splade),
        "sum": made_once("checkpoints/splade-sum", lambda folder: write_splade(folder, *POOLED["sum"])),
        "free": made_once("checkpoints/inference-free", write_inference_free),
    }
