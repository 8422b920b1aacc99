"""An encoder with routers: each text goes through what its router chooses, whichever engine encodes.

A learned router looks at the dense vector of the text by the base encoder, so its texts are encoded by the
base first; those that it leaves to the base are done then.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import numpy as np

from tercet.models.adapters.library import AdapterLibrary, unknown_adapter
from tercet.models.adapters.router_files import read_router, router_names
from tercet.models.adapters.routers import FixedSettings, Router, SoftSettings, resolve, router_json
from tercet.models.encoder import AdapterDescription, Encoder, EncoderInfo
from tercet.models.errors import (
    AdapterNotFoundError,
    AdapterNotServedError,
    AdapterUnusableError,
    CheckpointError,
)
from tercet.models.fingerprint import json_digest
from tercet.models.representations import OUTPUTS, Output, Representations, Route, TokenBatch
from tercet.models.tokenizer import Tokenizer

MIXING_REFUSED = (
    "this engine has one graph for each adapter, which it cannot mix; use the torch engine, or a router of "
    "kind centroid or gate"
)


class Engine(Encoder, Protocol):
    """An encoder that takes adapters by name, and with `mixes_adapters` also several by weight."""

    @property
    def mixes_adapters(self) -> bool: ...

    @property
    def library(self) -> AdapterLibrary: ...

    def encode_tokens(
        self,
        batch: TokenBatch,
        outputs: Sequence[Output] = OUTPUTS,
        adapters: Sequence[str | Route | None] | None = None,
    ) -> Representations: ...


class RoutedEncoder:
    """An engine and the routers beside its adapters. Safe to use from several threads.

    The folder is listed once, here; a router is read at its first use and kept, as adapters are.
    """

    def __init__(self, engine: Engine, root: Path, names: Sequence[str]) -> None:
        """root: folder of the adapters and routers; names: of the routers."""
        self._engine = engine
        self._root = root
        self._names = tuple(names)
        self._lock = threading.Lock()
        self._routers: dict[str, Router] = {}
        self._infos: dict[str, EncoderInfo] = {}

    @property
    def info(self) -> EncoderInfo:
        return self._engine.info

    @property
    def tokenizer(self) -> Tokenizer:
        return self._engine.tokenizer

    @property
    def pass_tokens(self) -> int:
        return self._engine.pass_tokens

    @property
    def pads(self) -> bool:
        return self._engine.pads

    def adapter_info(self, name: str) -> EncoderInfo:
        """What identifies the engine with an adapter, or with a router and all adapters that it names."""
        if name not in self._names:
            return self._adapter_info(name)
        with self._lock:
            if name not in self._infos:
                self._infos[name] = self._router_info(name)
            return self._infos[name]

    def describe_adapters(self) -> list[AdapterDescription]:
        """All adapters, then all routers."""
        adapters = [
            adapter for adapter in self._engine.describe_adapters() if adapter.name not in self._names
        ]
        return adapters + [self._describe(name) for name in self._names]

    def resolve_adapter(self, name: str, collection: str | None = None) -> str | None:
        """The name itself, or what a fixed router chooses."""
        return resolve(name, collection, self._fixed)

    def encode_tokens(
        self,
        batch: TokenBatch,
        outputs: Sequence[Output] = OUTPUTS,
        adapters: Sequence[str | None] | None = None,
    ) -> Representations:
        """Representations of each text, in the batch's order, with the routes that routers chose."""
        names = [None if name is None else self.resolve_adapter(name) for name in adapters or ()]
        rows = np.array([row for row, name in enumerate(names) if name in self._names], np.int64)
        if len(rows) == 0:
            return self._engine.encode_tokens(batch, outputs, names or None)
        routed = [names[row] for row in rows.tolist()]
        first, routes = self._first_pass(batch.take(rows), outputs, [name for name in routed if name])
        chosen: list[str | Route | None] = list(names)
        chosen_routes: list[Route | None] = [None] * len(batch)
        for row, route in zip(rows.tolist(), routes, strict=True):
            chosen[row] = route.adapters[0] if len(route.adapters) == 1 else route
            chosen_routes[row] = route
        done = np.array([chosen[row] is None for row in rows.tolist()], np.bool_)
        rest = np.setdiff1d(np.arange(len(batch)), rows[done])
        parts = [first.take(np.flatnonzero(done)).keep(outputs)] if done.any() else []
        if len(rest):
            names_of_rest = [chosen[row] for row in rest.tolist()]
            parts.append(self._engine.encode_tokens(batch.take(rest), outputs, names_of_rest))
        encoded = Representations.concatenate(parts)
        order = np.argsort(np.concatenate([rows[done], rest]), kind="stable")
        return replace(encoded.take(order), routes=tuple(chosen_routes))

    def _first_pass(
        self, batch: TokenBatch, outputs: Sequence[Output], names: Sequence[str]
    ) -> tuple[Representations, list[Route]]:
        """Representations by the base, and what the router of each text chooses.

        They have all outputs where a router may leave a text to the base, else only what it looks at.
        """
        routers = {name: self._usable(name) for name in dict.fromkeys(names)}
        may_rest = any(
            None in router.settings.adapters and not isinstance(router.settings, SoftSettings)
            for router in routers.values()
        )
        wanted = [output for output in OUTPUTS if output == "dense" or (may_rest and output in outputs)]
        first = self._engine.encode_tokens(batch, wanted)
        assert first.dense is not None  # noqa: S101 - it was asked for
        choices = {name: router.routes(first.dense) for name, router in routers.items()}
        return first, [choices[name][row] for row, name in enumerate(names)]

    def _usable(self, name: str) -> Router:
        self.adapter_info(name)
        return self._routers[name]

    def _adapter_info(self, name: str) -> EncoderInfo:
        known = self._engine.library.names
        if name not in known:
            raise unknown_adapter(name, tuple(sorted({*known, *self._names})))
        return self._engine.adapter_info(name)

    def _fixed(self, name: str) -> FixedSettings | None:
        if name not in self._names:
            return None
        with self._lock:
            settings = self._read(name).settings
        return settings if isinstance(settings, FixedSettings) else None

    def _read(self, name: str) -> Router:
        """The router of a name, every adapter that it names there. The lock is held."""
        if name not in self._routers:
            try:
                router = read_router(self._root / name)
                self._check(router)
            except CheckpointError as error:
                raise AdapterUnusableError(f"router {name!r} cannot be used: {error}") from error
            missing = [
                adapter
                for adapter in router.settings.adapters
                if adapter and adapter not in self._engine.library.names
            ]
            if missing:
                raise AdapterNotFoundError(
                    f"router {name!r} names the adapters {missing}, which are not there; add them and start "
                    "again, or make the router without them"
                )
            self._routers[name] = router
        return self._routers[name]

    def _check(self, router: Router) -> None:
        """Raises CheckpointError for a router of another base."""
        base, expected = router.base, self._engine.library.base_fingerprint
        if base is None:
            return
        if base.fingerprint != expected:
            raise CheckpointError(
                f"it was learned on base {base.name!r} (fingerprint {base.fingerprint}), not on this "
                f"encoder's ({expected}); learn it again with `tercet adapters route`"
            )
        if router.dimension != self.info.dense_dimension:
            raise CheckpointError(
                f"it takes vectors of {router.dimension} values; this encoder's have "
                f"{self.info.dense_dimension}"
            )

    def _router_info(self, name: str) -> EncoderInfo:
        router = self._read(name)
        if isinstance(router.settings, SoftSettings) and not self._engine.mixes_adapters:
            raise AdapterNotServedError(f"router {name!r} is soft: {MIXING_REFUSED}")
        if isinstance(router.settings, SoftSettings):
            self._require_no_prompts(name, router.settings)
        parts = [
            None if adapter is None else self._engine.adapter_info(adapter).fingerprint
            for adapter in router.settings.adapters
        ]
        digests = {"encoder": self.info.fingerprint, "router": router.digest, "adapters": parts}
        return replace(self.info, fingerprint=json_digest(digests), adapter=name)

    def _require_no_prompts(self, name: str, settings: SoftSettings) -> None:
        prompted = [
            adapter
            for adapter in settings.adapters
            if adapter is not None and self._engine.library.get(adapter).has_prompt
        ]
        if prompted:
            raise AdapterNotServedError(
                f"router {name!r} is soft, and {prompted} have soft prompts, which are not mixed by weight; "
                "make a router of kind gate or centroid"
            )

    def _describe(self, name: str) -> AdapterDescription:
        problem: str | None = None
        fingerprint: str | None = None
        try:
            fingerprint = self.adapter_info(name).fingerprint
        except AdapterUnusableError:
            problem = "it, or an adapter that it names, is damaged or of another base; the log names the file"
        except (AdapterNotFoundError, AdapterNotServedError) as error:
            problem = str(error)
        router = self._routers.get(name)
        if router is None:
            return AdapterDescription(name, None, None, problem=problem)
        return AdapterDescription(
            name,
            router.kind,
            fingerprint,
            router.description,
            problem=problem,
            router=router_json(router.settings),
        )


def with_routers(engine: Engine) -> Encoder:
    """The engine with the routers beside its adapters, or as it is where there are none."""
    root = engine.library.root
    names = router_names(root)
    return engine if root is None or not names else RoutedEncoder(engine, root, names)
