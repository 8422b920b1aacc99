"""Training an adapter in place of a whole model: attached before the run, saved apart from the base after."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tercet.models.adapters.attach import attach, attach_modules, fill_fusion, own_module, save_adapter
from tercet.models.adapters.base import adapter_base
from tercet.models.adapters.body import ThreadAdapters
from tercet.models.adapters.compound_settings import HypernetworkSettings, UnipeltSettings
from tercet.models.adapters.kinds import AdapterSettings
from tercet.models.adapters.library import require_computing, require_order
from tercet.models.adapters.parts import Hypernetwork
from tercet.models.adapters.peft_files import read_adapter_for
from tercet.models.adapters.record import Adapter, AdapterBase, ResolvedAdapter
from tercet.models.adapters.router_files import write_router
from tercet.models.adapters.routers import GateSettings, Router, RouterBase, RouterSettings, SoftSettings
from tercet.models.adapters.settings import (
    BottleneckSettings,
    FusionSettings,
    Ia3Settings,
    StackSettings,
    require_adapter_name,
)
from tercet.models.checkpoint import checkpoint_name, resolve_adapter
from tercet.models.encoder_model import EncoderModel
from tercet.models.errors import CheckpointError
from tercet.models.heads import Heads
from tercet.training.errors import ConfigError
from tercet.training.modules import RoutedModules
from tercet.training.settings.adapter import AdapterTraining, HypernetworkTraining, RoutingSettings
from tercet.training.settings.data import Tags

# In the body, whatever the folder is called: a run goes on, too, after its folder was renamed.
NAME = "trained"


@dataclass(frozen=True, slots=True)
class Attached:
    """An attached adapter: its settings, its base, and the adapters below it, the innermost first.

    chosen: the settings of its kind; fused: the bottlenecks that it holds; modules: several in its place,
    with their router; hypernetwork: that in the body.
    """

    settings: AdapterTraining
    chosen: AdapterSettings
    base: AdapterBase
    below: tuple[ResolvedAdapter, ...] = ()
    fused: tuple[Adapter, ...] = ()
    modules: RoutedModules | None = None
    hypernetwork: Hypernetwork | None = None

    def digests(self) -> dict[str, object]:
        """Those of the adapters that it is made with, at the keys of its settings that name their folders."""
        digests: dict[str, object] = {"below": [adapter.digest for adapter in self.below]}
        if self.fused:
            digests["fusion"] = {"modules": [adapter.digest for adapter in self.fused]}
        return digests


def attach_adapter(
    model: EncoderModel, base: Path, name: str, settings: AdapterTraining, tags: Sequence[Tags] = ()
) -> Attached:
    """Freezes the body and attaches a new adapter, or several with a router, which the model has then, too.

    base: the checkpoint's folder; name: that of the folder to be written; tags: of all sources, for a
    hypernetwork. The heads train with the adapter if the settings say so; they start from those of the
    adapters below, where these have any.

    Raises CheckpointError for a bad name, a base without heads, and an adapter below that is damaged or was
    trained on top of others, and ConfigError where one belongs to another base or is a stack, or where the
    modules of a fusion are no bottlenecks of one placement.
    """
    require_adapter_name(name)
    origin = adapter_base(base)
    if settings.routing is not None:
        return _attach_modules(model, origin, name, settings, settings.routing)
    below = tuple(lower_adapter(name, base, origin) for name in settings.below)
    require_order(settings.below, [adapter.record for adapter in below])
    if settings.kind == "sparse":
        _require_plain_layers(below)
    fused = () if settings.fusion is None else fused_adapters(settings.fusion.modules, base, origin, below)
    bottlenecks = [adapter.settings for adapter in fused if isinstance(adapter.settings, BottleneckSettings)]
    chosen: AdapterSettings
    if bottlenecks:
        chosen = FusionSettings.of(bottlenecks)
    elif settings.kind == HypernetworkSettings.kind:
        chosen = hypernetwork_of(settings.hypernetwork or HypernetworkTraining(), tags)
    else:
        chosen = settings.chosen
    attach(model.body, NAME, chosen, below=below)
    if isinstance(chosen, FusionSettings):
        fill_fusion(model.body, NAME, chosen, fused)
    lower_heads = [adapter.heads for adapter in below if adapter.heads is not None]
    if lower_heads:  # a stack has the heads of its last part that has any
        like = next(model.heads.parameters())
        model.heads = Heads.from_weights(lower_heads[-1], model.heads.settings).to(like)
    model.heads.requires_grad_(settings.heads)
    attached = own_module(model.body, NAME)
    generating = attached if isinstance(attached, Hypernetwork) else None
    return Attached(settings, chosen, origin, below, fused, hypernetwork=generating)


def hypernetwork_of(settings: HypernetworkTraining, tags: Sequence[Tags]) -> HypernetworkSettings:
    """A hypernetwork of the languages and tasks that sources have, in order of name. Raises ConfigError."""
    languages, tasks = ({getattr(each, key) for each in tags} for key in ("language", "task"))
    own = (settings.size, settings.width, settings.nonlinearity)
    try:
        return HypernetworkSettings(tuple(sorted(languages)), tuple(sorted(tasks)), *own)
    except CheckpointError as error:
        raise ConfigError(f"data.sources[].tags: {error}") from error


def _attach_modules(
    model: EncoderModel, origin: AdapterBase, name: str, settings: AdapterTraining, routing: RoutingSettings
) -> Attached:
    """Several adapters, whose router becomes a part of the model."""
    for module in module_names(name, settings):
        require_adapter_name(module)
    active = ThreadAdapters()
    parts = attach_modules(model.body, module_names(NAME, settings), settings.chosen, active)
    modules = RoutedModules(parts, active, origin.body.hidden_size, routing)
    model.add_module("router", modules.to(next(model.parameters()).device))
    model.heads.requires_grad_(settings.heads)
    return Attached(settings, settings.chosen, origin, modules=modules)


def lower_adapter(folder: str, base: Path, origin: AdapterBase) -> ResolvedAdapter:
    """A trained adapter of the same base, to lie under the new one. folder: or hub id; base: the checkpoint's
    folder.
    """
    adapter = read_adapter_for(resolve_adapter(folder), base, origin)
    if isinstance(adapter.settings, StackSettings):
        raise ConfigError(
            f"adapter.below: {folder} is a stack; name its parts instead, the innermost first: "
            f"{', '.join(adapter.settings.adapters)}"
        )
    require_computing(adapter)
    _require_base("adapter.below", folder, adapter, origin)
    return ResolvedAdapter(checkpoint_name(folder), adapter, (adapter,))


def fused_adapters(
    folders: Sequence[str], base: Path, origin: AdapterBase, below: Sequence[ResolvedAdapter]
) -> tuple[Adapter, ...]:
    """Trained bottlenecks of the same base and of one placement, for a fusion.

    folders: or hub ids; base: the checkpoint's folder.
    """
    key = "adapter.fusion.modules"
    adapters = tuple(read_adapter_for(resolve_adapter(folder), base, origin) for folder in folders)
    placements = {}
    for folder, adapter in zip(folders, adapters, strict=True):
        if not isinstance(adapter.settings, BottleneckSettings):
            raise ConfigError(f"{key}: {folder} is of kind {adapter.kind}; a fusion takes bottlenecks alone")
        _require_base(key, folder, adapter, origin)
        lower = {lying.name: lying.record for lying in below}
        require_order([*lower, folder], [*lower.values(), adapter])
        placements[adapter.settings.placement] = folder
    if len(placements) > 1:
        pairs = ", ".join(f"{folder} {placement}" for placement, folder in placements.items())
        raise ConfigError(f"{key}: they have several placements ({pairs}); a fusion takes those of one")
    return adapters


def _require_base(key: str, folder: str, adapter: Adapter, origin: AdapterBase) -> None:
    """Raises ConfigError, led by the key that names the folder, for an adapter of another base."""
    if (adapter.base.fingerprint, adapter.base.body) != (origin.fingerprint, origin.body):
        raise ConfigError(
            f"{key}: {folder} belongs to base {adapter.base.name!r} ({adapter.base.fingerprint}), "
            f"not to {origin.name!r} ({origin.fingerprint}); train it on this base first"
        )


def _require_plain_layers(below: Sequence[ResolvedAdapter]) -> None:
    """Raises ConfigError for adapters between whose change and the layer's own weights a gradient differs: by
    the base's weights it would choose others than those that train.
    """
    for adapter in below:
        settings = adapter.record.settings
        if isinstance(settings, Ia3Settings | UnipeltSettings | HypernetworkSettings) or (
            isinstance(settings, BottleneckSettings | FusionSettings) and settings.placement != "parallel"
        ):
            raise ConfigError(
                f"adapter.below: {adapter.name} is of kind {settings.kind}, and sparse changes do not go on "
                "top of that; choose lora, bias, sparse or a prefix"
            )


def module_names(name: str, settings: AdapterTraining) -> list[str]:
    """The names of the adapters that a router of this name chooses among; none for an adapter alone."""
    count = 0 if settings.routing is None else settings.routing.modules
    return [f"{name}-{number}" for number in range(1, count + 1)]


def write_trained_adapter(folder: Path, model: EncoderModel, attached: Attached) -> None:
    """Writes the adapter, with its heads where they trained with it; the folder's last part is its name.

    Several are written beside the folder, which gets their router, last, so that all that it names is there.
    """
    if attached.modules is None:
        _write_one(folder, NAME, model, attached)
        return
    names = module_names(folder.name, attached.settings)
    for own, name in zip(module_names(NAME, attached.settings), names, strict=True):
        _write_one(folder.with_name(name), own, model, attached)
    base = RouterBase(attached.base.name, attached.base.fingerprint)
    router = Router(
        _router_settings(tuple(names), attached.modules.top),
        base,
        {
            name: parameter.detach().float().cpu().numpy().copy()
            for name, parameter in attached.modules.gate.named_parameters()
        },
        attached.settings.description,
    )
    write_router(folder, router)


def _router_settings(names: tuple[str, ...], top: int) -> RouterSettings:
    if top == 1:
        return GateSettings(names)
    return SoftSettings(names, "gate", 1.0, top if top < len(names) else None)


def _write_one(folder: Path, own_name: str, model: EncoderModel, attached: Attached) -> None:
    """own_name: that of the adapter in the body."""
    settings = attached.settings
    trained_heads = any(parameter.requires_grad for parameter in model.heads.parameters())
    save_adapter(
        folder,
        model.body,
        attached.chosen,
        attached.base,
        name=own_name,
        below=attached.below,
        heads=model.heads.weights() if trained_heads else None,
        description=settings.description,
        language=settings.language,
        domain=settings.domain,
    )
