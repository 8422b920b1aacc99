"""The engine of static embeddings: the mean of the vectors of a text's tokens, in NumPy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from models.adapters.library import AdapterLibrary, unknown_adapter
from models.encoder import STATIC, AdapterDescription, EncoderInfo
from models.errors import UnsupportedError
from models.fingerprint import fingerprint, heads_digest
from models.representations import (
    OUTPUTS,
    Float32,
    Int32,
    Int64,
    Output,
    Representations,
    Route,
    TokenBatch,
    offsets_of,
)
from models.static_files import read_static

# Tokens whose vectors are gathered at a time, so that they stay in the caches.
TOKENS_AT_A_TIME = 4096


class StaticEncoder:
    """An `Encoder` with a dense side alone, which needs neither torch nor onnxruntime.

    A text without a token that has a vector has a vector of zeros: it is like nothing.
    """

    mixes_adapters = False
    pass_tokens = TOKENS_AT_A_TIME

    def __init__(
        self, folder: Path, name: str, *, origin: str | None = None, precision: str | None = None
    ) -> None:
        """precision: only the one that the vectors have. Raises CheckpointError and UnsupportedError."""
        self._files = read_static(folder)
        self.tokenizer = self._files.tokenizer
        settings = self.tokenizer.settings
        own = str(self._files.vectors.dtype)
        if precision not in (None, own):
            raise UnsupportedError(f"precision {precision!r}; the vectors of {name} are {own}, leave it out")
        parts = (self._files.digest, heads_digest({}), self.tokenizer.digest, settings)
        self.info = EncoderInfo(
            name=name,
            fingerprint=fingerprint(*parts),
            engine=STATIC,
            precision=own,
            dense_dimension=self._files.vectors.shape[1],
            colbert_dimension=0,
            vocabulary_size=0,
            max_length=settings.max_length,
            pooling=settings.pooling,
            checkpoint=origin,
        )
        self.library = AdapterLibrary(None, folder, self.info.fingerprint, (0, 0))

    def adapter_info(self, name: str) -> EncoderInfo:
        """Raises AdapterNotFoundError: there are none."""
        raise unknown_adapter(name, ())

    def describe_adapters(self) -> list[AdapterDescription]:
        """None."""
        return []

    def resolve_adapter(self, name: str, collection: str | None = None) -> str | None:
        """The name itself."""
        return name

    def encode_tokens(
        self,
        batch: TokenBatch,
        outputs: Sequence[Output] = OUTPUTS,
        adapters: Sequence[str | Route | None] | None = None,
    ) -> Representations:
        """The dense vectors of texts, in their order."""
        for adapter in adapters or ():
            if adapter is not None:
                self.adapter_info(str(adapter))
        dense = self._dense(batch) if "dense" in outputs else None
        return Representations(batch.lengths, batch.truncated, dense)

    def _dense(self, batch: TokenBatch) -> Float32:
        """Unit vectors float32[B, D], or zeros. The sum has the direction of the mean."""
        sums = np.zeros((len(batch), self.info.dense_dimension), np.float32)
        for texts, token_ids, offsets in _slices(batch, self._files.unknown):
            sums[texts] = np.add.reduceat(self._vectors(token_ids), offsets)
        norms: Float32 = np.sqrt(np.einsum("ij,ij->i", sums, sums))[:, None]
        return np.divide(sums, norms, out=sums, where=norms > 0)

    def _vectors(self, token_ids: Int32) -> Float32:
        """The vectors of tokens, float32[N, D]."""
        files = self._files
        rows = token_ids if files.rows is None else files.rows[token_ids]
        vectors = files.vectors[rows].astype(np.float32, copy=False)
        return vectors if files.weights is None else vectors * files.weights[token_ids, None]


def _slices(batch: TokenBatch, unknown: int | None) -> Iterator[tuple[Int64, Int32, Int64]]:
    """A few texts at a time that have tokens: their places, the tokens, and where those of each text begin.

    unknown: a token that is left out.
    """
    token_ids, lengths = batch.token_ids, batch.lengths
    if unknown is not None:
        known = token_ids != unknown
        counts = np.concatenate([[0], np.cumsum(known)])
        lengths, token_ids = np.diff(counts[batch.offsets]), token_ids[known]
    texts = np.flatnonzero(lengths)
    offsets = offsets_of(lengths[texts])
    ends = np.flatnonzero(np.diff(offsets[:-1] // TOKENS_AT_A_TIME)) + 1
    for some in np.split(np.arange(len(texts)), ends):
        if len(some):
            start, stop = offsets[some[0]], offsets[some[-1] + 1]
            yield texts[some], token_ids[start:stop], offsets[some] - start
