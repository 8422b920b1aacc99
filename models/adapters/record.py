"""An adapter in memory, as NumPy arrays: what its files hold and every engine starts from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from tercet.models.adapters.blocks import BodyShape
from tercet.models.adapters.kinds import AdapterSettings, digested_settings
from tercet.models.adapters.settings import INDICES, PromptSettings, StackSettings
from tercet.models.errors import CheckpointError
from tercet.models.fingerprint import arrays_digest, json_digest
from tercet.models.representations import Float32, Int32
from tercet.models.weights.head_weights import HeadWeights

HEAD_PREFIX = "heads."


@dataclass(frozen=True, slots=True)
class AdapterBase:
    """The checkpoint that an adapter was trained on.

    name: for people; fingerprint: that of its float encoder, which every engine knows.
    """

    name: str
    fingerprint: str
    body: BodyShape


@dataclass(frozen=True, slots=True, eq=False)
class Adapter:
    """A trained adapter. arrays: named as `settings.shapes`; heads: its own, or None for the base's.

    below: digests of the adapters on top of which it was trained, the innermost first; description, language,
    domain: for people, and for rules that choose among adapters. Raises CheckpointError naming the array that
    is missing, unknown, of a wrong shape or not finite, and for indices that do not ascend or are too large.
    """

    settings: AdapterSettings
    base: AdapterBase
    arrays: Mapping[str, Float32 | Int32] = field(default_factory=dict)
    heads: HeadWeights | None = None
    below: tuple[str, ...] = ()
    description: str = ""
    language: str | None = None
    domain: str | None = None

    def __post_init__(self) -> None:
        expected = self.settings.shapes(self.base.body)
        missing, unknown = (
            sorted(expected.keys() - self.arrays.keys()),
            sorted(self.arrays.keys() - expected.keys()),
        )
        if missing or unknown:
            raise CheckpointError(
                f"an adapter of kind {self.kind} lacks {len(missing)} tensors {missing[:3]} and has "
                f"{len(unknown)} that do not belong to it {unknown[:3]}; save it again"
            )
        for name, array in sorted(self.tensors().items()):
            if name in expected and array.shape != expected[name]:
                raise CheckpointError(
                    f"{name} has shape {list(array.shape)}; its settings and base need {list(expected[name])}"
                )
            if name == INDICES:
                self._require_ascending(array)
            elif array.dtype != np.float32 or not np.isfinite(array).all():
                raise CheckpointError(f"{name} must hold finite float32 numbers; train the adapter again")
        if isinstance(self.settings, StackSettings) and self.heads is not None:
            raise CheckpointError("a stack has no heads of its own; its last adapter with heads brings them")

    @property
    def kind(self) -> str:
        """The kind of its settings."""
        return self.settings.kind

    @property
    def digest(self) -> str:
        """sha256 over kind, settings and all tensors: what it computes, and nothing that is for people."""
        return json_digest(
            {
                "kind": self.kind,
                "settings": digested_settings(self.settings),
                "tensors": arrays_digest(self.tensors()),
            }
        )

    def tensors(self) -> dict[str, Float32 | Int32]:
        """All arrays under the names of adapter.safetensors, heads included."""
        heads = {} if self.heads is None else self.heads.arrays()
        return {**self.arrays, **{HEAD_PREFIX + name: array for name, array in heads.items()}}

    def _require_ascending(self, indices: Float32 | Int32) -> None:
        weights = sum(matrix.size for matrix in self.base.body.matrices())
        whole = indices.dtype == np.int32
        if not whole or indices[0] < 0 or indices[-1] >= weights or (indices[1:] <= indices[:-1]).any():
            raise CheckpointError(
                f"{INDICES} must be int32, ascending, from 0 and below {weights}; train the adapter again"
            )


@dataclass(frozen=True, slots=True, eq=False)
class ResolvedAdapter:
    """An adapter ready to be used: itself, or the parts of a stack, the innermost first.

    digest: what tells it from any other, over all parts in order; it takes time, so it is computed once.
    """

    name: str
    record: Adapter
    parts: tuple[Adapter, ...]
    digest: str = field(init=False)

    def __post_init__(self) -> None:
        digest = self.record.digest
        if isinstance(self.record.settings, StackSettings):
            digest = json_digest({"kind": self.record.kind, "parts": [part.digest for part in self.parts]})
        object.__setattr__(self, "digest", digest)

    @property
    def has_prompt(self) -> bool:
        """Whether vectors stand before those of a text, which makes it longer."""
        return any(isinstance(part.settings, PromptSettings) for part in self.parts)

    @property
    def heads(self) -> HeadWeights | None:
        """Heads of its own, or None for the base's."""
        return next((part.heads for part in reversed(self.parts) if part.heads is not None), None)
