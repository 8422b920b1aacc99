"""Where training starts from: found without running code, and verified."""

from __future__ import annotations

from pathlib import Path

import pytest

from tercet.models.errors import CheckpointError
from tercet.training.errors import BaseWeightsError
from tercet.training.runs.base_checkpoint import locate_base
from tercet.training.settings.base import BaseSettings


def base(**values: str) -> BaseSettings:
    return BaseSettings(name="b", licence="MIT", **values)


def test_a_folder_and_a_package(base_folder: Path, tiny_base: str) -> None:
    assert locate_base(base(checkpoint=str(base_folder), sha256=tiny_base)) == base_folder
    package = base(package="tiny_base_checkpoint", folder="model", sha256=tiny_base)
    assert locate_base(package) == base_folder


def test_other_weights_are_refused(base_folder: Path, tiny_base: str) -> None:
    with pytest.raises(BaseWeightsError, match=f"sha256 is {tiny_base}, expected 1234; wrong version"):
        locate_base(base(checkpoint=str(base_folder), sha256="1234"))
    (base_folder / "model.safetensors").unlink()
    with pytest.raises(BaseWeightsError, match=r"no such file to compare with base\.sha256"):
        locate_base(base(checkpoint=str(base_folder), sha256="1234"))


@pytest.mark.parametrize("name", ["no_such_package", "no_such_package.inside", "json", "..", "a b"])
def test_a_package_that_is_not_there(name: str) -> None:
    with pytest.raises(BaseWeightsError):
        locate_base(base(package=name, folder="model"))


def test_no_code_of_a_package_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("outer", "outer/inner", "outer/inner/model"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "__init__.py").write_text("raise RuntimeError('ran')")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert locate_base(base(package="outer", folder="inner")) == tmp_path / "outer" / "inner"
    with pytest.raises(BaseWeightsError, match=r"'outer\.inner' with the base weights is not installed"):
        locate_base(base(package="outer.inner", folder="model"))


def test_a_folder_that_is_not_there(tiny_base: str) -> None:
    with pytest.raises(BaseWeightsError, match="holds no such folder"):
        locate_base(base(package="tiny_base_checkpoint", folder="other"))
    with pytest.raises(CheckpointError, match="neither one that comes with Tercet"):
        locate_base(base(checkpoint="/no/such/folder"))
