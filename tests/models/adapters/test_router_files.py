"""A router on disk: read as written, and refused where anything is not as it should be."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tercet.models.adapters.files import ROUTER_FILE
from tercet.models.adapters.router_files import (
    TENSORS_FILE,
    read_router,
    router_names,
    write_router,
)
from tercet.models.adapters.routers import CentroidSettings, FixedSettings, Router, RouterBase
from tercet.models.errors import CheckpointError

LEARNED = Router(
    CentroidSettings(("law", None)),
    RouterBase("tiny", "f" * 64),
    {"centroids": np.eye(2, dtype=np.float32)},
    "By what a text is about.",
)
FIXED = Router(FixedSettings("language", {"ko": "korean"}, None))


def test_what_is_written_is_read(tmp_path: Path) -> None:
    for router in (LEARNED, FIXED, LEARNED):
        write_router(tmp_path / "by-domain", router)
        again = read_router(tmp_path / "by-domain")
        assert (again.settings, again.base, again.description) == (
            router.settings,
            router.base,
            router.description,
        )
        assert again.digest == router.digest
        assert (tmp_path / "by-domain" / TENSORS_FILE).exists() == bool(router.arrays)
    (tmp_path / "empty").mkdir()
    assert router_names(tmp_path) == ["by-domain"]
    assert router_names(tmp_path / "nowhere") == router_names(None) == []


def test_a_name_of_its_own(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="does not match"):
        write_router(tmp_path / "By Domain", FIXED)
    (tmp_path / "law").mkdir()
    (tmp_path / "law" / "adapter.json").write_text("{}")
    with pytest.raises(CheckpointError, match="need two names"):
        write_router(tmp_path / "law", FIXED)
    write_router(tmp_path / "by-language", FIXED)
    (tmp_path / "by-language" / "adapter.json").write_text("{}")
    with pytest.raises(CheckpointError, match="need two names"):
        read_router(tmp_path / "by-language")


def edit(**changes: Any) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        record = json.loads((folder / ROUTER_FILE).read_text())
        record.update(changes)
        record = {key: value for key, value in record.items() if value is not ...}
        (folder / ROUTER_FILE).write_text(json.dumps(record))

    return change


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (edit(format_version=2), r"router\.json has format version 2"),
        (edit(format_version=True), "has format version True"),
        (edit(colour="red"), r"unknown: \['colour'\]"),
        (edit(kind=...), r"keys missing: \['kind'\]"),
        (edit(kind="lora"), r"router\.json: kind is 'lora'"),
        (edit(settings=[]), "it must be an object"),
        (edit(base={"name": "x"}), "base must be null, or have"),
        (edit(base=None), r"router\.safetensors: a router of kind centroid has no base"),
        (edit(description=3), "description must be a string"),
        (edit(tensors_sha256="0" * 64), r"router\.safetensors has sha256"),
        (edit(tensors_sha256=None), r"router\.json: a router of kind centroid has tensors"),
        (edit(settings={"adapters": ["a", "b", "c"]}), "it routes among 3 adapters"),
        (lambda folder: (folder / TENSORS_FILE).unlink(), r"router\.safetensors cannot be read"),
        (lambda folder: (folder / ROUTER_FILE).write_text("{"), "cannot be read as JSON"),
        (lambda folder: (folder / ROUTER_FILE).write_text("[]"), "a JSON object is expected"),
    ],
)
def test_what_is_refused(tmp_path: Path, damage: Callable[[Path], None], message: str) -> None:
    write_router(tmp_path / "by-domain", LEARNED)
    damage(tmp_path / "by-domain")
    with pytest.raises(CheckpointError, match=message) as error:
        read_router(tmp_path / "by-domain")
    assert str(tmp_path / "by-domain") in str(error.value)
