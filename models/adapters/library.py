"""The adapters that one encoder can use: the sub-folders of a folder, each known by its name."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path

from tercet.models.adapters.compound_settings import HypernetworkSettings
from tercet.models.adapters.files import is_adapter
from tercet.models.adapters.generating import generated, generated_names
from tercet.models.adapters.peft_files import base_at, read_adapter_for
from tercet.models.adapters.record import Adapter, ResolvedAdapter
from tercet.models.adapters.router_files import read_router, router_names
from tercet.models.adapters.routers import FixedSettings
from tercet.models.adapters.settings import PAIR_MARK, StackSettings, is_adapter_name
from tercet.models.encoder import AdapterDescription, EncoderInfo
from tercet.models.errors import (
    AdapterNotFoundError,
    AdapterNotServedError,
    AdapterUnusableError,
    CheckpointError,
    no_such,
)


class AdapterLibrary:
    """Adapters below `root`, for one base. Safe to use from several threads.

    The folder is listed once, here; an adapter is read at its first use and kept. One that is added or
    changed later is used after a restart, so a fingerprint is always that of what is loaded. A pair that a
    fixed router chooses, as `korean+law`, is a stack that no folder has. A hypernetwork stands for what it
    makes, as `world+ko+law`.
    """

    def __init__(
        self,
        root: Path | None,
        checkpoint: Path,
        base_name: str,
        base_fingerprint: str,
        head_sizes: tuple[int, int],
    ) -> None:
        """checkpoint: folder of the base; base_name: what it goes by; base_fingerprint: that of its float
        encoder; head_sizes: those of its heads, which heads of an adapter share.
        """
        self.root = root
        own = adapter_names(root)
        made = {name: [name] if root is None else generated_names(root / name) or [name] for name in own}
        self.names = tuple(sorted({*chain.from_iterable(made.values()), *pair_names(root)}))
        self._own = frozenset(own)
        self.base_fingerprint = base_fingerprint
        self._checkpoint = checkpoint
        self._base_name = base_name
        self._head_sizes = head_sizes
        self._lock = threading.Lock()
        self._resolved: dict[str, ResolvedAdapter | AdapterUnusableError] = {}
        self._records: dict[str, Adapter] = {}

    def get(self, name: str) -> ResolvedAdapter:
        """The adapter of a name.

        Raises AdapterNotFoundError, or AdapterUnusableError where it is damaged or of another base.
        """
        if name not in self.names and not self._is_pair(name):
            raise unknown_adapter(name, self.names)
        with self._lock:
            resolved = self._resolved.get(name)
            if resolved is None:
                resolved = self._resolved[name] = self._resolve(name)
        if isinstance(resolved, AdapterUnusableError):
            raise resolved
        return resolved

    def folder(self, name: str) -> Path:
        """The folder of an adapter that is known."""
        if self.root is None or name not in self._own:
            raise unknown_adapter(name, self.names)
        return self.root / name

    def _is_pair(self, name: str) -> bool:
        """Whether it is made of two adapters, also where no router chooses both any more."""
        parts = name.split(PAIR_MARK)
        return len(parts) == 2 and self._own.issuperset(parts)

    def _resolve(self, name: str) -> ResolvedAdapter | AdapterUnusableError:
        try:
            record = self._read(name)
            return ResolvedAdapter(name, record, resolve_parts(record, self._read))
        except CheckpointError as error:
            return AdapterUnusableError(f"adapter {name!r} cannot be used: {error}")

    def _read(self, name: str) -> Adapter:
        if name not in self._records:
            self._records[name] = self._checked(name)
        return self._records[name]

    def _checked(self, name: str) -> Adapter:
        if PAIR_MARK in name:
            lower, *tags = name.split(PAIR_MARK)
            return pair_of(name, self._read) if len(tags) == 1 else generated(self._read(lower), *tags)
        if name not in self._own:
            raise CheckpointError(f"it stacks adapter {name!r}, which is not there; add it, and start again")
        base = base_at(self._checkpoint, self._base_name, self.base_fingerprint)
        adapter = read_adapter_for(self.folder(name), self._checkpoint, base)
        if adapter.base.fingerprint != self.base_fingerprint or adapter.base.body != base.body:
            raise CheckpointError(
                f"{name} belongs to base {adapter.base.name!r} (fingerprint {adapter.base.fingerprint}), not "
                f"to this encoder's ({self.base_fingerprint}); serve it with its base, or train it on this"
            )
        if adapter.heads is not None and adapter.heads.sizes != self._head_sizes:
            raise CheckpointError(
                f"{name} has heads of {adapter.heads.sizes} rows for lexical weights and token vectors, its "
                f"base of {self._head_sizes}; both must be equal"
            )
        return adapter


def describe(library: AdapterLibrary, info_of: Callable[[str], EncoderInfo]) -> list[AdapterDescription]:
    """All adapters of an encoder, in order of name. info_of: its `adapter_info`."""
    descriptions = []
    for name in library.names:
        try:
            record = library.get(name).record
            tags = (record.description, record.language, record.domain)
            descriptions.append(AdapterDescription(name, record.kind, info_of(name).fingerprint, *tags))
        except AdapterUnusableError:
            problem = "it is damaged, or belongs to another base; the log names the file"
            descriptions.append(AdapterDescription(name, None, None, problem=problem))
        except AdapterNotServedError as error:
            descriptions.append(AdapterDescription(name, record.kind, None, *tags, problem=str(error)))
    return descriptions


def resolve_parts(record: Adapter, read: Callable[[str], Adapter]) -> tuple[Adapter, ...]:
    """The parts of an adapter, the innermost first.

    Raises CheckpointError for a stack within a stack, and for an adapter that lies on others than those on
    top of which it was trained.
    """
    if not isinstance(record.settings, StackSettings):
        if record.below:
            raise CheckpointError(
                f"it was trained on top of {len(record.below)} other(s); "
                "stack it on these with `tercet adapters stack`, and use the stack"
            )
        return (record,)
    parts = tuple(read(name) for name in record.settings.adapters)
    if any(isinstance(part.settings, StackSettings) for part in parts):
        raise CheckpointError(
            f"it stacks {list(record.settings.adapters)}, of which one is a stack itself; name its parts"
        )
    for part in parts:
        require_computing(part)
    require_order(record.settings.adapters, parts)
    return parts


def require_computing(adapter: Adapter) -> None:
    """Raises CheckpointError for a hypernetwork, which computes nothing without a language and a task."""
    if isinstance(adapter.settings, HypernetworkSettings):
        raise CheckpointError(
            "a hypernetwork computes nothing alone; make an adapter of a language and a task with "
            "`tercet adapters generate`, and use that"
        )


def require_order(names: Sequence[str], parts: Sequence[Adapter]) -> None:
    """Raises CheckpointError unless each part lies on what it was trained on top of, if that was anything."""
    digests: tuple[str, ...] = ()
    for name, part in zip(names, parts, strict=True):
        if part.below and part.below != digests:
            raise CheckpointError(
                f"{name} was trained on top of others than {list(names[: len(digests)])}, or these have "
                "changed; stack it on those, or train it again"
            )
        digests += (part.digest,)


def adapter_names(root: Path | None) -> list[str]:
    """The names of all adapters below a folder, in order; none where there is no such folder."""
    if root is None or not root.is_dir():
        return []
    return sorted(path.name for path in root.iterdir() if is_adapter_name(path.name) and is_adapter(path))


def pair_of(name: str, read: Callable[[str], Adapter]) -> Adapter:
    """The stack of the two adapters of a pair, as `korean+law`, which no folder has."""
    parts = tuple(name.split(PAIR_MARK))
    return Adapter(StackSettings(parts), read(parts[0]).base)


def pair_names(root: Path | None) -> set[str]:
    """The names of the pairs that fixed routers below a folder choose; a damaged one is told at its use."""
    names: set[str] = set()
    for router in router_names(root):
        assert root is not None  # noqa: S101 - it has a router
        with suppress(CheckpointError):
            settings = read_router(root / router).settings
            names.update(settings.pairs if isinstance(settings, FixedSettings) else ())
    return names


def unknown_adapter(name: str, known: tuple[str, ...]) -> AdapterNotFoundError:
    """The error for a name that no adapter has."""
    return AdapterNotFoundError(no_such("adapter", name, known))
