"""Representations as one safetensors body: the arrays of `/embed` and of `tercet embed`.

dense float32[B, D]; sparse_indptr int64[B+1], sparse_token_ids int32, sparse_weights float32;
colbert float32[ΣL, C], colbert_offsets int64[B+1]; tokens int64[B]; truncated bool[B]. What a router chose is
JSON in the metadata `routes`: for each text null, or an object with `adapters` and their `weights`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors.numpy import load, save

from models.representations import Representations, Route, SparseRows, TokenVectors

MEDIA_TYPE = "application/x-safetensors"
ROUTES = "routes"


def to_bytes(representations: Representations, metadata: Mapping[str, str] | None = None) -> bytes:
    """The body; `metadata`, such as model and fingerprint, goes into its header."""
    arrays: dict[str, npt.NDArray[Any]] = {
        "tokens": representations.tokens,
        "truncated": representations.truncated,
    }
    if representations.dense is not None:
        arrays["dense"] = representations.dense
    if representations.sparse is not None:
        arrays["sparse_indptr"] = representations.sparse.indptr
        arrays["sparse_token_ids"] = representations.sparse.token_ids
        arrays["sparse_weights"] = representations.sparse.weights
    if representations.colbert is not None:
        arrays["colbert"] = representations.colbert.vectors
        arrays["colbert_offsets"] = representations.colbert.offsets
    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    named = dict(metadata or {})
    if representations.routes is not None:
        named[ROUTES] = json.dumps([route and asdict(route) for route in representations.routes])
    return bytes(save(contiguous, metadata=named))


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
