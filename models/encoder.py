"""The contract of every engine, and the loader that chooses one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, Protocol, get_args

from tercet.models.errors import UnsoundRepresentationsError
from tercet.models.representations import (
    OUTPUTS,
    InputType,
    LexicalKind,
    Output,
    Representations,
    TokenBatch,
    sides_of,
)
from tercet.models.soundness import LARGEST_SIZE, Expected, first_fault
from tercet.models.tokenizer import Tokenizer

Engine = Literal["onnx", "native", "onnxruntime", "torch"]
"""What runs an encoder: an exported graph, by kernels of our own where they take it, or always by these, or
always by onnxruntime; or the weights, by torch.
"""
STATIC = "static"  # what static embeddings call their engine, whichever is asked for
_SIDE_SIZES = ("dense_dimension", "vocabulary_size", "colbert_dimension")
_LEAST_SIZES = {**dict.fromkeys(_SIDE_SIZES, 0), "max_length": 1}


@dataclass(frozen=True, slots=True)
class EncoderInfo:
    """What identifies an encoder and bounds its inputs; lengths in tokens, special tokens included.

    dense_dimension, vocabulary_size, colbert_dimension: 0 where it has no such side;
    lexical: what its checkpoint recommends to collections; checkpoint: where another process of this machine
    opens it again where its name does not say that (see `tercet.models.checkpoint.checkpoint_origin`).
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
    checkpoint: str | None = None

    @property
    def sides(self) -> tuple[Output, ...]:
        """The outputs that it has."""
        return sides_of(self.dense_dimension, self.vocabulary_size, self.colbert_dimension)

    def given(self, outputs: Sequence[Output]) -> list[Output]:
        """The outputs, of those asked for, that the encoder has."""
        return [output for output in outputs if output in self.sides]

    def to_json(self) -> dict[str, Any]:
        """What other machines may know of it: all but where its checkpoint lies."""
        return {name: value for name, value in asdict(self).items() if name != "checkpoint"}

    @staticmethod
    def from_json(values: Mapping[str, Any]) -> EncoderInfo:
        """What another process says of its encoder; where its checkpoint lies is of no use here.

        Raises ValueError that names what cannot be so.
        """
        info = EncoderInfo(**{**values, "checkpoint": None})
        for name in ("name", "fingerprint", "engine", "precision", "pooling"):
            if not (isinstance(getattr(info, name), str) and getattr(info, name)):
                raise ValueError(f"{name} is {getattr(info, name)!r}; it must be text")
        for name, least in _LEAST_SIZES.items():
            value = getattr(info, name)
            if type(value) is not int or not least <= value <= LARGEST_SIZE:
                raise ValueError(
                    f"{name} is {value!r}; it must be a whole number from {least} to {LARGEST_SIZE}"
                )
        if not info.sides:
            raise ValueError(f"{', '.join(_SIDE_SIZES)} are all 0; an encoder has one side at least")
        if info.adapter is not None and not isinstance(info.adapter, str):
            raise ValueError(f"adapter is {info.adapter!r}; it must be text or null")
        if info.lexical not in get_args(LexicalKind):
            raise ValueError(f"lexical is {info.lexical!r}; it must be one of {get_args(LexicalKind)}")
        return info


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

    @staticmethod
    def from_json(values: Mapping[str, Any]) -> AdapterDescription:
        """What another process says of an adapter. Raises ValueError that names what cannot be so."""
        description = AdapterDescription(**values)
        if not (isinstance(description.name, str) and description.name):
            raise ValueError(f"name of an adapter is {description.name!r}; it must be text")
        for name in ("kind", "fingerprint", "description", "language", "domain", "problem"):
            if not isinstance(getattr(description, name), str | None):
                raise ValueError(f"{name} of adapter {description.name!r} must be text or null")
        if not isinstance(description.router, dict | None):
            raise ValueError(f"router of adapter {description.name!r} must be an object or null")
        return description


class Encoder(Protocol):
    """One pass from tokens to the three representations. Safe to call from several threads."""

    @property
    def info(self) -> EncoderInfo: ...

    @property
    def tokenizer(self) -> Tokenizer: ...

    @property
    def pass_tokens(self) -> int:
        """Tokens of one pass that suit its device."""
        ...

    @property
    def pads(self) -> bool:
        """Whether texts of a pass are filled up to the longest, so that those of like length go together."""
        ...

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
        """Representations of each text of the batch, in the batch's order; without outputs that it lacks.

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

    @property
    def pass_tokens(self) -> int:
        return self.encoder.pass_tokens

    @property
    def pads(self) -> bool:
        """Passes with an adapter do, whatever those of the base do."""
        return True

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
    resolved = None if adapter is None else encoder.resolve_adapter(adapter, collection)
    if resolved is None:
        return encoder
    encoder.adapter_info(resolved)
    return AdaptedEncoder(encoder, resolved)


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
    (by default the encoder's own limit), and as `encode_tokens` does.
    """
    batch = encoder.tokenizer.tokenize(texts, input_type, max_length=max_length, truncate=truncate)
    return encode_tokens(encoder, batch, outputs)


def encode_tokens(
    encoder: Encoder,
    batch: TokenBatch,
    outputs: Sequence[Output] = OUTPUTS,
    adapters: Sequence[str | None] | None = None,
) -> Representations:
    """As `Encoder.encode_tokens`, and checked: hardware and weights fail in ways that engines do not notice.

    Raises UnsoundRepresentationsError where the encoder made something that cannot be used.
    """
    encoded = encoder.encode_tokens(batch, outputs, adapters)
    require_sound(encoded, len(batch), outputs, encoder.info, encoder.info.max_length, encoder.info.name)
    return encoded


def require_sound(
    encoded: Representations,
    texts: int,
    outputs: Sequence[Output],
    info: EncoderInfo,
    max_length: int,
    made_by: str,
) -> None:
    """Raises UnsoundRepresentationsError where what an encoder made is not what was asked of it.

    max_length: tokens of a text at most; made_by: what messages call the encoder.
    """
    blank = info.engine == STATIC  # the mean of no vectors, or of vectors of zeros, has no direction
    fault = first_fault(encoded, Expected(texts, info.given(outputs), info, max_length, blank=blank))
    if fault is not None:
        raise UnsoundRepresentationsError(
            f"{made_by} made representations that cannot be used: {fault}; try again, and if that goes on "
            "check its device and its checkpoint"
        )
