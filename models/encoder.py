"""The contract of every engine, and the loader that chooses one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from models.representations import OUTPUTS, InputType, LexicalKind, Output, Representations, TokenBatch
from models.tokenizer import Tokenizer

Engine = Literal["onnx", "torch"]


@dataclass(frozen=True, slots=True)
class EncoderInfo:
    """What identifies an encoder and bounds its inputs; lengths in tokens, special tokens included.

    lexical: what its checkpoint recommends to collections.
    """

    name: str
    fingerprint: str
    engine: str
    precision: str
    dense_dimension: int
    colbert_dimension: int
    vocabulary_size: int
    max_length: int
    pooling: str
    adapter: str | None = None
    lexical: LexicalKind = "plain"


@dataclass(frozen=True, slots=True)
class AdapterDescription:
    """An adapter or router for people: what it is, and why it cannot be used where `fingerprint` is None.

    router: the settings of a router as in its `router.json`; None for an adapter.
    """

    name: str
    kind: str | None
    fingerprint: str | None
    description: str = ""
    language: str | None = None
    domain: str | None = None
    problem: str | None = None
    router: Mapping[str, Any] | None = None


class Encoder(Protocol):
    """One pass from tokens to the three representations. Safe to call from several threads."""

    @property
    def info(self) -> EncoderInfo: ...

    @property
    def tokenizer(self) -> Tokenizer: ...

    def adapter_info(self, name: str) -> EncoderInfo:
        """What identifies this encoder with an adapter or a router; reads it at its first use.

        Raises AdapterNotFoundError, and AdapterUnusableError or AdapterNotServedError where it is there but
        cannot be used: after this, encoding with it does not fail for its sake.
        """
        ...

    def describe_adapters(self) -> list[AdapterDescription]:
        """All adapters and routers there are, each in order of name."""
        ...

    def resolve_adapter(self, name: str, collection: str | None = None) -> str | None:
        """What a name stands for: itself, or what a fixed router has for its tag, where None is the base.

        collection: the one that is made or searched, if any. Says nothing of whether the adapter is there;
        raises as `adapter_info` for a router.
        """
        ...

    def encode_tokens(
        self,
        batch: TokenBatch,
        outputs: Sequence[Output] = OUTPUTS,
        adapters: Sequence[str | None] | None = None,
    ) -> Representations:
        """Representations of each text of the batch, in the batch's order.

        Any number of texts: the engine sorts by length and works in batches of its token budget.
        adapters: the adapter or router of each text, None for the base; by default the base for all. Raises
        as `adapter_info` does.
        """
        ...


@dataclass(frozen=True, slots=True)
class AdaptedEncoder:
    """An encoder that takes one adapter for every text, and is otherwise as any other."""

    encoder: Encoder
    adapter: str

    @property
    def info(self) -> EncoderInfo:
        return self.encoder.adapter_info(self.adapter)

    @property
    def tokenizer(self) -> Tokenizer:
        return self.encoder.tokenizer

    def adapter_info(self, name: str) -> EncoderInfo:
        """As of the encoder itself."""
        return self.encoder.adapter_info(name)

    def describe_adapters(self) -> list[AdapterDescription]:
        """As of the encoder itself."""
        return self.encoder.describe_adapters()

    def resolve_adapter(self, name: str, collection: str | None = None) -> str | None:
        """As of the encoder itself."""
        return self.encoder.resolve_adapter(name, collection)

    def encode_tokens(
        self,
        batch: TokenBatch,
        outputs: Sequence[Output] = OUTPUTS,
        adapters: Sequence[str | None] | None = None,
    ) -> Representations:
        """Representations of each text, with this adapter unless `adapters` are given."""
        chosen = [self.adapter] * len(batch) if adapters is None else adapters
        return self.encoder.encode_tokens(batch, outputs, chosen)


def with_adapter(encoder: Encoder, adapter: str | None, collection: str | None = None) -> Encoder:
    """The encoder with an adapter or router, or as it is without one. Raises as `Encoder.adapter_info`.

    collection: the one that is made or searched, if any, as a fixed router may choose by it.
    """
    found = None if adapter is None else encoder.resolve_adapter(adapter, collection)
    if found is None:
        return encoder
    encoder.adapter_info(found)
    return AdaptedEncoder(encoder, found)


def encode(
    encoder: Encoder,
    texts: Sequence[str],
    input_type: InputType = "document",
    outputs: Sequence[Output] = OUTPUTS,
    *,
    max_length: int | None = None,
    truncate: bool = True,
) -> Representations:
    """Tokenizes and encodes texts, in input order.

    Raises TextTooLongError where `truncate` is false and a text exceeds `max_length`
    (by default the encoder's own limit).
    """
    batch = encoder.tokenizer.tokenize(texts, input_type, max_length=max_length, truncate=truncate)
    return encoder.encode_tokens(batch, outputs)
