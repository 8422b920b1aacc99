"""Fixtures of this folder's tests."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def root(data: Path) -> Path:
    return data / "collections"
