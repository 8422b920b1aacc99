"""Finds the checkpoint that training starts from, and checks its weights."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from tercet.models.checkpoint import resolve_checkpoint
from tercet.models.fingerprint import file_digest
from tercet.training.errors import BaseWeightsError
from tercet.training.settings.base import BaseSettings

WEIGHTS = "model.safetensors"


def locate_base(settings: BaseSettings) -> Path:
    """The folder of the base checkpoint, its weights verified by sha256 where one is given.

    Raises BaseWeightsError, or CheckpointError where no checkpoint has the name.
    """
    folder = (
        resolve_checkpoint(settings.checkpoint, settings.revision or None)
        if settings.checkpoint
        else package_folder(settings)
    )
    if settings.sha256:
        weights = folder / WEIGHTS
        if not weights.is_file():
            raise BaseWeightsError(f"{weights}: there is no such file to compare with base.sha256")
        digest = file_digest(weights)
        if digest != settings.sha256:
            raise BaseWeightsError(
                f"{weights}: sha256 is {digest}, expected {settings.sha256}; wrong version?"
            )
    return folder


def package_folder(settings: BaseSettings) -> Path:
    """The folder inside an installed package, which is found, not imported: none of its code runs."""
    # A dotted name would import the package that it begins with.
    spec = find_spec(settings.package) if settings.package.isidentifier() else None
    if spec is None or not spec.submodule_search_locations:
        raise BaseWeightsError(
            f"the package {settings.package!r} with the base weights is not installed; "
            "install the extras 'train' and 'dev', as `make setup` does"
        )
    folder = Path(spec.submodule_search_locations[0]) / settings.folder
    if not folder.is_dir():
        raise BaseWeightsError(f"{folder}: the package {settings.package!r} holds no such folder")
    return folder
