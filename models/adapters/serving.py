"""The adapters of a torch encoder: loaded at their first use, and put to work on their rows of a batch."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from tercet.models.adapters.body import ActingShare, Part, Share, ThreadAdapters, install
from tercet.models.adapters.library import AdapterLibrary
from tercet.models.adapters.mixing import MixedHeads, MixedShare
from tercet.models.adapters.parts import load_part
from tercet.models.adapters.record import Adapter, ResolvedAdapter
from tercet.models.batching import Adapters, rows_by_adapter
from tercet.models.errors import AdapterNotServedError, UnsupportedError
from tercet.models.heads import Heads
from tercet.models.representations import Route


@dataclass(frozen=True, slots=True, eq=False)
class LoadedAdapter:
    """An adapter on the encoder's device. heads: its own, or None for the base's."""

    parts: tuple[Part, ...]
    heads: Heads | None


@dataclass(frozen=True, slots=True, eq=False)
class _Group:
    """Rows int64[R] of a batch that go through the same adapters, with weights float32[R, K]."""

    names: tuple[str | None, ...]
    rows: Tensor
    weights: Tensor


class ServedAdapters:
    """Loads adapters into a body that is ready for them. Safe to use from several threads."""

    def __init__(self, library: AdapterLibrary, body: nn.Module, heads: Heads) -> None:
        self.library = library
        self._body = body
        self._base_heads = heads
        self._active = ThreadAdapters()
        self._loaded: dict[str, LoadedAdapter] = {}
        self._parts: dict[Adapter, Part] = {}
        self._lock = threading.Lock()
        self._refusal: UnsupportedError | None = None
        if library.names:
            try:
                install(body, self._active)
            except UnsupportedError as error:  # the base can be served all the same
                self._refusal = error

    def load(self, name: str) -> ResolvedAdapter:
        """The adapter of a name, ready to act. Raises as `AdapterLibrary.get`, and AdapterNotServedError."""
        resolved = self.library.get(name)
        if self._refusal is not None:
            raise AdapterNotServedError(str(self._refusal)) from self._refusal
        with self._lock:
            if name not in self._loaded:
                self._loaded[name] = self._load(resolved)
        return resolved

    def acting(self, adapters: Adapters) -> AbstractContextManager[None]:
        """Within the context, each row of this thread's pass goes through its adapter, or several by
        weight, all of them loaded.
        """
        if not any(adapters):
            return self._active.use(())
        groups = self._groups(adapters)
        shares: list[ActingShare] = []
        for group in groups:
            rows = None if len(groups) == 1 else group.rows
            parts = tuple(() if name is None else self._loaded[name].parts for name in group.names)
            mixed = len(parts) > 1
            if mixed and any(part.prompt is not None for member in parts for part in member):
                raise AdapterNotServedError(
                    f"one of the adapters {list(group.names)} has a soft prompt, which is not mixed "
                    "with others by weight; take a router of kind gate or centroid"
                )
            shares.append(MixedShare(rows, parts, group.weights) if mixed else Share(rows, parts[0]))
        return self._active.use(shares)

    def mixes(self, adapters: Adapters) -> bool:
        """Whether texts of these adapters may go through one pass: those without soft prompts."""
        return not any(self._has_prompt(adapter) for adapter in set(adapters))

    def _has_prompt(self, adapter: str | Route | None) -> bool:
        names = adapter.adapters if isinstance(adapter, Route) else (adapter,)
        return any(self.library.get(name).has_prompt for name in names if name is not None)

    def heads(self, adapters: Adapters) -> list[tuple[Tensor, Heads | MixedHeads]]:
        """Rows int64[R] whose adapters have heads of their own, with these heads."""
        groups: list[tuple[Tensor, Heads | MixedHeads]] = []
        if not any(adapters):
            return groups
        for group in self._groups(adapters):
            own = [None if name is None else self._loaded[name].heads for name in group.names]
            if any(own):
                members = [heads or self._base_heads for heads in own]
                mixed = len(members) > 1
                groups.append((group.rows, MixedHeads(members, group.weights) if mixed else members[0]))
        return groups

    def _groups(self, adapters: Adapters) -> list[_Group]:
        """Rows that go through the same adapters, whatever the weights."""
        routes = [
            adapter if isinstance(adapter, Route) else Route((adapter,), (1.0,)) for adapter in adapters
        ]
        device = next(self._body.parameters()).device
        return [
            _Group(
                names,
                torch.from_numpy(rows).to(device),
                torch.tensor([routes[row].weights for row in rows.tolist()], device=device),
            )
            for names, rows in rows_by_adapter([route.adapters for route in routes]).items()
        ]

    def _load(self, resolved: ResolvedAdapter) -> LoadedAdapter:
        heads = None
        if resolved.heads is not None:
            device = next(self._body.parameters()).device
            heads = Heads.from_weights(resolved.heads, self._base_heads.settings).to(device).eval()
        return LoadedAdapter(tuple(map(self._part, resolved.parts)), heads)

    def _part(self, adapter: Adapter) -> Part:
        """Loaded once, in however many stacks it is."""
        if adapter not in self._parts:
            self._parts[adapter] = load_part(adapter, self._body)
        return self._parts[adapter]
