"""The adapters of a torch encoder: loaded at their first use, and put to work on their rows of a batch."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from models.adapters.body import Part, Share, ThreadAdapters, install, load_parts
from models.adapters.library import AdapterLibrary
from models.adapters.record import ResolvedAdapter
from models.batching import rows_by_adapter
from models.errors import AdapterNotServedError, UnsupportedError
from models.heads import Heads


@dataclass(frozen=True, slots=True, eq=False)
class LoadedAdapter:
    """An adapter on the encoder's device. heads: its own, or None for the base's."""

    resolved: ResolvedAdapter
    parts: tuple[Part, ...]
    heads: Heads | None


class ServedAdapters:
    """Loads adapters into a body that is ready for them. Safe to use from several threads."""

    def __init__(self, library: AdapterLibrary, body: nn.Module, heads: Heads) -> None:
        self.library = library
        self._body = body
        self._base_heads = heads
        self._active = ThreadAdapters()
        self._loaded: dict[str, LoadedAdapter] = {}
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

    def acting(self, adapters: Sequence[str | None]) -> AbstractContextManager[None]:
        """Within the context, each row of this thread's pass goes through its adapter, already loaded."""
        found = rows_by_adapter(adapters)
        if not any(found):
            return self._active.use(())
        shares = [
            Share(
                None if len(found) == 1 else self._on_device(rows),
                () if name is None else self._loaded[name].parts,
            )
            for name, rows in ((name, torch.from_numpy(rows)) for name, rows in found.items())
        ]
        return self._active.use(shares)

    def heads(self, adapters: Sequence[str | None]) -> list[tuple[Tensor, Heads]]:
        """Rows int64[R] whose adapter has heads of its own, with these heads."""
        return [
            (self._on_device(torch.from_numpy(rows)), heads)
            for name, rows in rows_by_adapter(adapters).items()
            if name is not None and (heads := self._loaded[name].heads) is not None
        ]

    def _load(self, resolved: ResolvedAdapter) -> LoadedAdapter:
        heads = None
        if resolved.heads is not None:
            like = next(self._base_heads.parameters())
            heads = Heads.from_weights(resolved.heads, self._base_heads.settings).to(like).eval()
        return LoadedAdapter(resolved, load_parts(resolved, self._body), heads)

    def _on_device(self, rows: Tensor) -> Tensor:
        return rows.to(next(self._base_heads.parameters()).device)
