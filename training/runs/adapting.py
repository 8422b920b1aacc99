"""Training an adapter in place of a whole model: attached before the run, saved apart from the base after."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tercet.models.adapters.attach import attach, save_adapter
from tercet.models.adapters.base import adapter_base
from tercet.models.adapters.library import require_order
from tercet.models.adapters.peft_files import read_adapter_for
from tercet.models.adapters.record import AdapterBase, ResolvedAdapter
from tercet.models.adapters.settings import StackSettings, require_adapter_name
from tercet.models.encoder_model import EncoderModel
from tercet.models.heads import Heads
from tercet.training.errors import ConfigError
from tercet.training.settings.adapter import AdapterTraining

# In the body, whatever the folder is called: a run goes on, too, after its folder was renamed.
NAME = "trained"


@dataclass(frozen=True, slots=True)
class Attached:
    """An attached adapter: its settings, its base, and the adapters below it, the innermost first."""

    settings: AdapterTraining
    base: AdapterBase
    below: tuple[ResolvedAdapter, ...]


def attach_adapter(model: EncoderModel, base: Path, name: str, settings: AdapterTraining) -> Attached:
    """Freezes the body and attaches a new adapter.

    base: the checkpoint's folder; name: that of the folder to be written. The heads train with the adapter if
    the settings say so; they start from those of the adapters below, where these have any.
    Raises CheckpointError for a bad name, a base without heads, and an adapter below that is damaged or was
    trained on top of others, and ConfigError where one belongs to another base or is a stack.
    """
    require_adapter_name(name)
    origin = adapter_base(base)
    below = tuple(lower_adapter(Path(folder), base, origin) for folder in settings.below)
    require_order(settings.below, [adapter.record for adapter in below])
    attach(model.body, NAME, settings.chosen, below=below)
    lower_heads = [adapter.heads for adapter in below if adapter.heads is not None]
    if lower_heads:  # a stack has the heads of its last part that has any
        like = next(model.heads.parameters())
        model.heads = Heads.from_weights(lower_heads[-1], model.heads.settings).to(like)
    model.heads.requires_grad_(settings.heads)
    return Attached(settings, origin, below)


def lower_adapter(folder: Path, base: Path, origin: AdapterBase) -> ResolvedAdapter:
    """A trained adapter of the same base, to lie under the new one. base: the checkpoint's folder."""
    adapter = read_adapter_for(folder, base, origin)
    if isinstance(adapter.settings, StackSettings):
        raise ConfigError(
            f"adapter.below: {folder} is a stack; name its parts instead, the innermost first: "
            f"{', '.join(adapter.settings.adapters)}"
        )
    if adapter.base.fingerprint != origin.fingerprint:
        raise ConfigError(
            f"adapter.below: {folder} belongs to base {adapter.base.name!r} ({adapter.base.fingerprint}), "
            f"not to {origin.name!r} ({origin.fingerprint}); train it on this base first"
        )
    return ResolvedAdapter(folder.name, adapter, (adapter,))


def write_trained_adapter(folder: Path, model: EncoderModel, attached: Attached) -> None:
    """Writes the adapter, with its heads where they trained with it; the folder's last part is its name."""
    settings = attached.settings
    trained_heads = any(parameter.requires_grad for parameter in model.heads.parameters())
    save_adapter(
        folder,
        model.body,
        settings.chosen,
        attached.base,
        name=NAME,
        below=attached.below,
        heads=model.heads.weights() if trained_heads else None,
        description=settings.description,
        language=settings.language,
        domain=settings.domain,
    )
