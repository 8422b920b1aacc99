"""Training an adapter in place of a whole model: attached before the run, saved apart from the base after."""

from __future__ import annotations

from pathlib import Path

from models.adapters.attach import adapter_base, attach, save_adapter
from models.adapters.files import read_adapter
from models.adapters.record import AdapterBase, ResolvedAdapter
from models.torch_encoder import EncoderModel
from training.config import AdapterTraining
from training.errors import ConfigError


def attach_adapter(model: EncoderModel, base: Path, name: str, settings: AdapterTraining) -> AdapterBase:
    """Freezes the body and attaches a new adapter; returns what the adapter records of its base.

    base: the checkpoint's folder. The heads train with the adapter if the settings say so.
    Raises CheckpointError for a base without heads and for a damaged adapter, and ConfigError where one that
    is to lie below belongs to another base.
    """
    origin = adapter_base(base)
    below = [lower_adapter(Path(folder), origin) for folder in settings.below]
    attach(model.body, name, settings.chosen, below=below)
    model.heads.requires_grad_(settings.heads)
    return origin


def lower_adapter(folder: Path, origin: AdapterBase) -> ResolvedAdapter:
    """A trained adapter of the same base, to lie under the new one."""
    adapter = read_adapter(folder)
    if adapter.base.fingerprint != origin.fingerprint:
        raise ConfigError(
            f"adapter.below: {folder} belongs to base {adapter.base.name!r} ({adapter.base.fingerprint}), "
            f"not to {origin.name!r} ({origin.fingerprint}); train it on this base first"
        )
    return ResolvedAdapter(folder.name, adapter, (adapter,))


def write_trained_adapter(
    folder: Path, model: EncoderModel, settings: AdapterTraining, origin: AdapterBase
) -> None:
    """Writes the adapter, with its heads where they trained with it; the folder's last part is its name."""
    save_adapter(
        folder,
        model.body,
        settings.chosen,
        origin,
        heads=model.heads.weights() if settings.heads else None,
        description=settings.description,
        language=settings.language,
        domain=settings.domain,
    )
