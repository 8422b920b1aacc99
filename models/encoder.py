"""The contract of every engine, and the loader that chooses one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from models.representations import OUTPUTS, InputType, Output, Representations, TokenBatch
from models.tokenizer import Tokenizer

Engine = Literal["onnx", "torch"]


@dataclass(frozen=True, slots=True)
class EncoderInfo:
    """What identifies an encoder and bounds its inputs; lengths in tokens, special tokens included."""

    name: str
    fingerprint: str
    engine: str
    precision: str
    dense_dimension: int
    colbert_dimension: int
    vocabulary_size: int
    max_length: int
    pooling: str


class Encoder(Protocol):
    """One pass from tokens to the three representations. Safe to call from several threads."""

    @property
    def info(self) -> EncoderInfo: ...

    @property
    def tokenizer(self) -> Tokenizer: ...

    def encode_tokens(self, batch: TokenBatch, outputs: Sequence[Output] = OUTPUTS) -> Representations:
        """Representations of each text of the batch, in the batch's order.

        Any number of texts: the engine sorts by length and works in batches of its token budget.
        """
        ...


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
