"""Fixtures of the collection's JSON files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Alter = Callable[[Path, Callable[[dict[str, Any]], Any]], None]


@pytest.fixture
def alter() -> Alter:
    """Changes the object in a JSON file."""

    def change_file(path: Path, change: Callable[[dict[str, Any]], Any]) -> None:
        record = json.loads(path.read_text())
        change(record)
        path.write_text(json.dumps(record))

    return change_file
