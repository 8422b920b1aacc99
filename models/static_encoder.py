"""The engine of static embeddings: the mean of the vectors of a text's tokens, in NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tercet.models.adapters.library import AdapterLibrary, unknown_adapter
from tercet.models.batching import plan_batches
from tercet.models.encoder import STATIC, AdapterDescription, EncoderInfo
from tercet.models.errors import UnsupportedError
from tercet.models.fingerprint import fingerprint, heads_digest
from tercet.models.representations import OUTPUTS, Float32, Int64, Output, Representations, Route, TokenBatch
from tercet.models.weights.static_files import read_static

# Tokens whose vectors are gathered at a time, so that they stay in the caches.
TOKENS_AT_A_TIME = 4096


class StaticEncoder:
    """An `Encoder` with a dense side alone, which needs neither torch nor onnxruntime.

    A text without a token that has a vector has a vector of zeros: it is like nothing.
    """

    mixes_adapters = False
    pass_tokens = TOKENS_AT_A_TIME
    pads = False

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
        self.library = AdapterLibrary(None, folder, name, self.info.fingerprint, (0, 0))

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
        for rows in plan_batches(batch.lengths, TOKENS_AT_A_TIME):
            sums[rows] = self._sums(*batch.take(rows).padded(pad_id=0))
        norms: Float32 = np.sqrt(np.einsum("ij,ij->i", sums, sums))[:, None]
        return np.divide(sums, norms, out=sums, where=norms > 0)

    def _sums(self, ids: Int64, mask: Int64) -> Float32:
        """The sum of the vectors of each text's tokens, float32[B, D], of ids and mask int64[B, L]."""
        files = self._files
        shares = mask.astype(np.float32)
        if files.unknown is not None:
            shares[ids == files.unknown] = 0
        if files.weights is not None:
            shares *= files.weights[ids]
        vectors = files.vectors[ids if files.rows is None else files.rows[ids]]  # [B, L, D]
        sums: Float32 = np.matmul(shares[:, None], vectors.astype(np.float32, copy=False))[:, 0]
        return sums
