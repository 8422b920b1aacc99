"""Representations as the JSON of `/embed`."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import orjson

from models.encoder import EncoderInfo
from models.representations import Float32, Representations, Route
from models.tokenizer import Tokenizer


def embeddings_json(
    representations: Representations, info: EncoderInfo, tokenizer: Tokenizer, *, packed: bool
) -> bytes:
    """The answer's body; `packed`: dense and colbert as base64 of little-endian float32."""
    array = _packed if packed else np.ascontiguousarray
    tokens, truncated = representations.tokens.tolist(), representations.truncated.tolist()
    embeddings: list[dict[str, Any]] = [
        {"tokens": count, "truncated": cut} for count, cut in zip(tokens, truncated, strict=True)
    ]
    for embedding, route in zip(embeddings, representations.routes or (), strict=False):
        if route is not None:
            embedding.update(_route_json(route))
    if representations.dense is not None:
        for embedding, vector in zip(embeddings, representations.dense, strict=True):
            embedding["dense"] = array(vector)
    if representations.sparse is not None:
        strings = tokenizer.token_strings(representations.sparse.token_ids)
        for row, embedding in enumerate(embeddings):
            ids, weights = representations.sparse.row(row)
            start = int(representations.sparse.indptr[row])
            embedding["sparse"] = {
                "token_ids": np.ascontiguousarray(ids),
                "weights": np.ascontiguousarray(weights),
                "tokens": strings[start : start + len(ids)],
            }
    if representations.colbert is not None:
        for row, embedding in enumerate(embeddings):
            embedding["colbert"] = array(representations.colbert.row(row))
    answer = {
        "model": info.name,
        "adapter": info.adapter,
        "fingerprint": info.fingerprint,
        "usage": {"tokens": sum(tokens)},
        "embeddings": embeddings,
    }
    return orjson.dumps(answer, option=orjson.OPT_SERIALIZE_NUMPY)


def values_of(representations: Representations) -> int:
    """How many numbers there are, as a measure of the work to write them."""
    dense, sparse, colbert = representations.dense, representations.sparse, representations.colbert
    return (
        (0 if dense is None else dense.size)
        + (0 if sparse is None else 3 * len(sparse.token_ids))
        + (0 if colbert is None else colbert.vectors.size)
    )


def _route_json(route: Route) -> dict[str, Any]:
    if len(route.adapters) == 1:
        return {"adapter": route.adapters[0]}
    pairs = zip(route.adapters, route.weights, strict=True)
    return {"adapters": [{"adapter": name, "weight": weight} for name, weight in pairs]}


def _packed(array: Float32) -> dict[str, Any]:
    values = np.ascontiguousarray(array, "<f4")
    return {
        "data": base64.b64encode(values.data).decode("ascii"),
        "shape": list(array.shape),
        "dtype": "float32",
    }
