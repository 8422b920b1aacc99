"""Representations as NumPy arrays, in the binary form in which the server gives and takes them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from safetensors.numpy import load, save

from tercet_client.types import DocumentRequest

Array = npt.NDArray[Any]
Float32 = npt.NDArray[np.float32]
Int32 = npt.NDArray[np.int32]
Dtype = Literal["float32", "float16", "int8", "binary", "ubinary"]
MEDIA_TYPE = "application/x-safetensors"


@dataclass(frozen=True, slots=True)
class Embeddings:
    """Of N texts what was asked for.

    dense: float32[N, D]; sparse_indptr: int64[N+1], where each text's part of sparse_token_ids int32 and of
    sparse_weights float32 begins; colbert: float32[ΣL, C]; colbert_offsets: int64[N+1], where each text's
    token vectors begin; tokens: int64[N]; truncated: bool[N]. model, fingerprint: of the encoder.
    dtype: of dense and colbert, as it was asked for: `int8` goes with dense_scales float32[N] and
    colbert_scales float32[ΣL], `ubinary` and `binary` have D / 8 bytes; `decoded` gives float32.
    """

    model: str
    fingerprint: str
    tokens: npt.NDArray[np.int64]
    truncated: npt.NDArray[np.bool_]
    dense: Array | None = None
    sparse_indptr: npt.NDArray[np.int64] | None = None
    sparse_token_ids: Int32 | None = None
    sparse_weights: Float32 | None = None
    colbert: Array | None = None
    colbert_offsets: npt.NDArray[np.int64] | None = None
    dtype: Dtype = "float32"
    dense_scales: Float32 | None = None
    colbert_scales: Float32 | None = None

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
            **{name: arrays[name] for name in (*ARRAYS, *SCALES) if name in arrays},
            dtype=header.get("dtype", "float32"),
        )

    def decoded(self) -> Embeddings:
        """The same with dense and colbert as float32: signs are vectors of 1 and -1, scaled to length 1."""
        return replace(
            self,
            dense=None if self.dense is None else decode(self.dense, self.dtype, self.dense_scales),
            colbert=None if self.colbert is None else decode(self.colbert, self.dtype, self.colbert_scales),
            dtype="float32",
            dense_scales=None,
            colbert_scales=None,
        )

    def __len__(self) -> int:
        return len(self.tokens)

    def sparse(self, row: int) -> tuple[Int32, Float32]:
        """A text's token ids and their weights. Raises ValueError where they were not asked for."""
        if self.sparse_indptr is None or self.sparse_token_ids is None or self.sparse_weights is None:
            raise ValueError("these embeddings have no lexical weights; ask for sparse")
        part = slice(*self.sparse_indptr[row : row + 2])
        return self.sparse_token_ids[part], self.sparse_weights[part]

    def token_vectors(self, row: int) -> Array:
        """A text's token vectors, [L, C]. Raises ValueError where they were not asked for."""
        if self.colbert is None or self.colbert_offsets is None:
            raise ValueError("these embeddings have no token vectors; ask for colbert")
        vectors: Array = self.colbert[slice(*self.colbert_offsets[row : row + 2])]
        return vectors


def decode(values: Array, dtype: Dtype, scales: Float32 | None = None) -> Float32:
    """Vectors of a type, [N, D] or of signs [N, D / 8], as float32[N, D]. scales: float32[N], of int8."""
    if dtype == "int8":
        return np.asarray(values * np.asarray(scales, np.float32)[:, None], np.float32)
    if dtype not in ("binary", "ubinary"):
        return np.asarray(values, np.float32)
    packed = values if dtype == "ubinary" else values.view(np.uint8) ^ np.uint8(128)
    signs = np.unpackbits(packed, axis=1).astype(np.float32) * 2 - 1
    return signs / np.float32(np.sqrt(signs.shape[1]))


ARRAYS = ("dense", "sparse_indptr", "sparse_token_ids", "sparse_weights", "colbert", "colbert_offsets")
SCALES = ("dense_scales", "colbert_scales")


def documents_body(
    documents: Sequence[DocumentRequest], embeddings: Embeddings, metadata: Mapping[str, str]
) -> bytes:
    """The binary body of a put: documents with as many embeddings. Raises ValueError for other numbers, and
    for embeddings that are not float32.
    """
    if embeddings.dtype != "float32":
        raise ValueError(
            f"these embeddings are {embeddings.dtype}; documents take float32: embed without dtype"
        )
    if len(documents) != len(embeddings):
        raise ValueError(f"there are {len(documents)} documents and {len(embeddings)} embeddings")
    lines = "\n".join(json.dumps(document) for document in documents).encode()
    arrays: dict[str, Array] = {"documents": np.frombuffer(lines, np.uint8)}
    for name in ARRAYS:
        array = getattr(embeddings, name)
        if array is not None:
            arrays[name] = np.ascontiguousarray(array)
    return bytes(save(arrays, {"fingerprint": embeddings.fingerprint, **metadata}))
