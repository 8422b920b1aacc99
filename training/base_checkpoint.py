"""Finds the base checkpoint inside an installed Python package and checks its weights."""

from __future__ import annotations

import hashlib
from importlib.util import find_spec
from pathlib import Path

from training.config import BaseSettings
from training.errors import BaseWeightsError

WEIGHTS = "model.safetensors"


def locate_base(settings: BaseSettings) -> Path:
    """The folder of the base checkpoint, its weights verified by sha256.

    The package is found, not imported: none of its code runs. Raises BaseWeightsError.
    """
    spec = find_spec(settings.package)
    if spec is None or not spec.submodule_search_locations:
        raise BaseWeightsError(
            f"the package {settings.package!r} with the base weights is not installed; "
            "install the extras 'train' and 'dev', as `make setup` does"
        )
    folder = Path(spec.submodule_search_locations[0]) / settings.folder
    weights = folder / WEIGHTS
    if not weights.is_file():
        raise BaseWeightsError(f"{weights}: the package {settings.package!r} holds no such file")
    digest = hashlib.sha256(weights.read_bytes()).hexdigest()
    if digest != settings.sha256:
        raise BaseWeightsError(f"{weights}: sha256 is {digest}, expected {settings.sha256}; wrong version?")
    return folder
