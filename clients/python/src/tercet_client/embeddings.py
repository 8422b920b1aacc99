"""Representations as NumPy arrays, in the binary form in which the server gives and takes them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors.numpy import load, save

from tercet_client.types import DocumentRequest

Array = npt.NDArray[Any]
Float32 = npt.NDArray[np.float32]
Int32 = npt.NDArray[np.int32]
MEDIA_TYPE = "application/x-safetensors"


@dataclass(frozen=True, slots=True)
class Embeddings:
    """Of N texts what was asked for.

    dense: float32[N, D]; sparse_indptr: int64[N+1], where each text's part of sparse_token_ids int32 and of
    sparse_weights float32 begins; colbert: float32[ΣL, C]; colbert_offsets: int64[N+1], where each text's
    token vectors begin; tokens: int64[N]; truncated: bool[N]. model, fingerprint: of the encoder.
    """

    model: str
    fingerprint: str
    tokens: npt.NDArray[np.int64]
    truncated: npt.NDArray[np.bool_]
    dense: Float32 | None = None
    sparse_indptr: npt.NDArray[np.int64] | None = None
    sparse_token_ids: Int32 | None = None
    sparse_weights: Float32 | None = None
    colbert: Float32 | None = None
    colbert_offsets: npt.NDArray[np.int64] | None = None

    @staticmethod
    def of(body: bytes) -> Embeddings:
        """Reads the binary answer of `/embed`."""
        arrays = load(body)
        header = json.loads(body[8 : 8 + int.from_bytes(body[:8], "little")])["__metadata__"]
        return Embeddings(
            header["model"],
            header["fingerprint"],
            arrays["tokens"].astype(np.int64),
            arrays["truncated"].astype(np.bool_),
            **{name: arrays[name] for name in ARRAYS if name in arrays},
        )

    def __len__(self) -> int:
        return len(self.tokens)

    def sparse(self, row: int) -> tuple[Int32, Float32]:
        """A text's token ids and their weights. Raises ValueError where they were not asked for."""
        if self.sparse_indptr is None or self.sparse_token_ids is None or self.sparse_weights is None:
            raise ValueError("these embeddings have no lexical weights; ask for sparse")
        part = slice(*self.sparse_indptr[row : row + 2])
        return self.sparse_token_ids[part], self.sparse_weights[part]

    def token_vectors(self, row: int) -> Float32:
        """A text's token vectors, float32[L, C]. Raises ValueError where they were not asked for."""
        if self.colbert is None or self.colbert_offsets is None:
            raise ValueError("these embeddings have no token vectors; ask for colbert")
        vectors: Float32 = self.colbert[slice(*self.colbert_offsets[row : row + 2])]
        return vectors


ARRAYS = ("dense", "sparse_indptr", "sparse_token_ids", "sparse_weights", "colbert", "colbert_offsets")


def documents_body(
    documents: Sequence[DocumentRequest], embeddings: Embeddings, metadata: Mapping[str, str]
) -> bytes:
    """The binary body of a put: documents with as many embeddings. Raises ValueError for other numbers."""
    if len(documents) != len(embeddings):
        raise ValueError(f"there are {len(documents)} documents and {len(embeddings)} embeddings")
    lines = "\n".join(json.dumps(document) for document in documents).encode()
    arrays: dict[str, Array] = {"documents": np.frombuffer(lines, np.uint8)}
    for name in ARRAYS:
        array = getattr(embeddings, name)
        if array is not None:
            arrays[name] = np.ascontiguousarray(array)
    return bytes(save(arrays, {"fingerprint": embeddings.fingerprint, **metadata}))
