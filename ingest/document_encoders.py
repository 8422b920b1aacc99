"""What a build encodes documents with."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from typing import Protocol

from tercet.models.encoder import Encoder, EncoderInfo, encode, with_adapter
from tercet.models.representations import Representations
from tercet.models.stream import Known, Watch, encode_stream
from tercet.models.tokenizer import Tokenizer


class DocumentEncoder(Protocol):
    """Encodes documents' texts."""

    @property
    def info(self) -> EncoderInfo: ...

    @property
    def tokenizer(self) -> Tokenizer: ...

    def resolve_adapter(self, name: str, collection: str | None = None) -> str | None:
        """What a name stands for, as `Encoder.resolve_adapter`."""
        ...

    def use_adapter(self, adapter: str | None) -> None:
        """From now on texts are encoded with this adapter, or with none. Raises as `Encoder.adapter_info`."""
        ...

    def encode(self, texts: Sequence[str]) -> Representations:
        """All three representations, in input order; long texts are cut at the encoder's limit."""
        ...

    def encode_stream(self, texts: Iterable[str], known: Known, watch: Watch) -> Generator[Representations]:
        """Representations of any number of texts, in order, as of `tercet.models.stream.encode_stream`."""
        ...


class LocalDocuments:
    """An encoder of this process."""

    def __init__(self, encoder: Encoder) -> None:
        self._base = self._encoder = encoder

    @property
    def info(self) -> EncoderInfo:
        return self._encoder.info

    @property
    def tokenizer(self) -> Tokenizer:
        return self._encoder.tokenizer

    def resolve_adapter(self, name: str, collection: str | None = None) -> str | None:
        """What a name stands for."""
        return self._base.resolve_adapter(name, collection)

    def use_adapter(self, adapter: str | None) -> None:
        """From now on texts are encoded with this adapter, or with none."""
        self._encoder = with_adapter(self._base, adapter)

    def encode(self, texts: Sequence[str]) -> Representations:
        """All three representations, in input order."""
        return encode(self._encoder, texts, "document")

    def encode_stream(self, texts: Iterable[str], known: Known, watch: Watch) -> Generator[Representations]:
        """Representations of any number of texts, in order."""
        return encode_stream(self._encoder, texts, "document", known=known, watch=watch)
