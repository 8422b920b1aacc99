"""Representations as one safetensors body: the arrays of `/embed` and of `tercet embed`.

dense float32[B, D]; sparse_indptr int64[B+1], sparse_token_ids int32, sparse_weights float32;
colbert float32[ΣL, C], colbert_offsets int64[B+1]; tokens int64[B]; truncated bool[B]. dense and colbert may
be of another type, as `tercet.service.answers.dtypes` says, named in the metadata `dtype`, with dense_scales
float32[B] and colbert_scales float32[ΣL] for int8. What a router chose is JSON in the metadata `routes`: for
each text null, or an object with `adapters` and their `weights`.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from types import TracebackType

from safetensors.numpy import load

from tercet.models.encoder import EncoderInfo
from tercet.models.representations import Float32, Int64, Representations, Route, SparseRows, TokenVectors
from tercet.service.answers.dtypes import Dtype, typed
from tercet.service.answers.growing_arrays import GrowingArrays
from tercet.service.load.pools import Pool

MEDIA_TYPE = "application/x-safetensors"
ROUTES = "routes"

# What takes less time to copy than to hand to a thread; more may go through files.
SMALL_TOKENS = 256
SMALL_BYTES = 2**20


class BinaryBody:
    """A body that takes representations slice by slice. Leaving it lets go of what it holds.

    folder: where they wait while they are many, by default the system's folder for temporary files; dtype: of
    dense and colbert.
    """

    def __init__(self, folder: Path | None = None, dtype: Dtype = "float32") -> None:
        self._arrays = GrowingArrays(folder)
        self._dtype = dtype
        self._routes: list[Route | None] = []

    def __enter__(self) -> BinaryBody:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._arrays.close()

    @property
    def size_bytes(self) -> int:
        """Bytes of all arrays so far."""
        return self._arrays.size_bytes

    def append(self, part: Representations) -> None:
        """Appends the representations of texts; all slices have the same outputs."""
        arrays = self._arrays
        arrays.append("tokens", part.tokens)
        arrays.append("truncated", part.truncated)
        if part.dense is not None:
            self._append_vectors("dense", part.dense)
        if part.sparse is not None:
            self._append_offsets("sparse_indptr", part.sparse.indptr, "sparse_token_ids")
            arrays.append("sparse_token_ids", part.sparse.token_ids)
            arrays.append("sparse_weights", part.sparse.weights)
        if part.colbert is not None:
            self._append_offsets("colbert_offsets", part.colbert.offsets, "colbert")
            self._append_vectors("colbert", part.colbert.vectors)
        self._routes.extend(part.routes or (None,) * len(part))

    def chunks(self, metadata: Mapping[str, str]) -> Iterator[bytes]:
        """The whole body; `metadata`, such as model and fingerprint, goes into its header."""
        named = dict(metadata)
        if self._dtype != "float32":
            named["dtype"] = self._dtype
        if any(self._routes):
            named[ROUTES] = json.dumps([route and asdict(route) for route in self._routes])
        return chain([self._arrays.header(named)], self._arrays.chunks())

    def _append_vectors(self, name: str, vectors: Float32) -> None:
        typed_vectors = typed(vectors, self._dtype)
        self._arrays.append(name, typed_vectors.values)
        if typed_vectors.scales is not None:
            self._arrays.append(f"{name}_scales", typed_vectors.scales)

    def _append_offsets(self, name: str, offsets: Int64, packed: str) -> None:
        """Adds a slice's offsets, counted from the beginning of the packed array as it is so far."""
        shifted = offsets + self._arrays.rows(packed)
        self._arrays.append(name, shifted[1:] if self._arrays.rows(name) else shifted)


async def binary_pieces(
    slices: AsyncGenerator[Representations],
    info: EncoderInfo,
    pool: Pool,
    folder: Path | None = None,
    dtype: Dtype = "float32",
) -> AsyncGenerator[bytes]:
    """The body of all slices; it begins after the last, since its header has the sizes of all arrays.

    folder, dtype: as for `BinaryBody`.
    """
    with BinaryBody(folder, dtype) as body:
        async with aclosing(slices):
            async for part in slices:
                if int(part.tokens.sum()) > SMALL_TOKENS:
                    await pool.run(body.append, part)
                else:
                    body.append(part)
        metadata = {"model": info.name, "fingerprint": info.fingerprint}
        if info.adapter is not None:
            metadata["adapter"] = info.adapter
        pieces = body.chunks(metadata)
        if body.size_bytes <= SMALL_BYTES:
            for piece in pieces:
                yield piece
        else:
            while piece := await pool.run(next, pieces, b""):
                yield piece


def from_bytes(body: bytes) -> tuple[Representations, dict[str, str]]:
    """The representations of a body and its metadata. Raises ValueError where it is not such a body."""
    try:
        arrays = load(body)
        header_bytes = int.from_bytes(body[:8], "little")
        metadata = dict(json.loads(body[8 : 8 + header_bytes]).get("__metadata__") or {})
        sparse = colbert = None
        if "sparse_indptr" in arrays:
            sparse = SparseRows(arrays["sparse_indptr"], arrays["sparse_token_ids"], arrays["sparse_weights"])
        if "colbert" in arrays:
            colbert = TokenVectors(arrays["colbert"], arrays["colbert_offsets"])
        routes = _routes(metadata.pop(ROUTES)) if ROUTES in metadata else None
        return Representations(
            arrays["tokens"], arrays["truncated"], arrays.get("dense"), sparse, colbert, routes
        ), metadata
    except KeyError as error:
        raise ValueError(f"the body lacks the array {error}") from None
    except Exception as error:
        raise ValueError(f"the body is not safetensors: {error}") from error


def _routes(text: str) -> tuple[Route | None, ...]:
    return tuple(
        route and Route(tuple(route["adapters"]), tuple(route["weights"])) for route in json.loads(text)
    )
