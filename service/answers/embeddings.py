"""Representations as the JSON of `/embed`, in pieces that each take a fraction of a millisecond to write."""

from __future__ import annotations

import base64
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson

from tercet.models.encoder import EncoderInfo
from tercet.models.representations import Float32, Representations, Route
from tercet.models.tokenizer import Tokenizer
from tercet.service.answers.dtypes import Dtype, typed

PIECE_VALUES = 4096
PIECE_BYTES = 3 * 2**16  # before base64, which makes 4 characters of 3 bytes


async def embeddings_json(
    slices: AsyncGenerator[Representations],
    info: EncoderInfo,
    tokenizer: Tokenizer,
    *,
    packed: bool,
    dtype: Dtype = "float32",
) -> AsyncGenerator[bytes]:
    """The answer's body, text by text. packed: dense and colbert as base64 of little-endian values; dtype: of
    these.
    """
    encoder = {"model": info.name, "adapter": info.adapter, "fingerprint": info.fingerprint}
    separator = orjson.dumps(encoder)[:-1] + b',"embeddings":['
    tokens = 0
    async with aclosing(slices):
        async for part in slices:
            for row in range(len(part)):
                yield separator
                for piece in embedding_json(part, row, tokenizer, packed=packed, dtype=dtype):
                    yield piece
                separator = b","
            tokens += int(part.tokens.sum())
    yield b'],"usage":' + orjson.dumps({"tokens": tokens}) + b"}"


def embedding_json(
    representations: Representations,
    row: int,
    tokenizer: Tokenizer,
    *,
    packed: bool,
    dtype: Dtype = "float32",
) -> Iterator[bytes]:
    """One item of `embeddings`."""
    known: dict[str, Any] = {
        "tokens": int(representations.tokens[row]),
        "truncated": bool(representations.truncated[row]),
    }
    route = None if representations.routes is None else representations.routes[row]
    if route is not None:
        known.update(_route_json(route))
    if representations.sparse is not None:
        ids, weights = representations.sparse.row(row)
        known["sparse"] = {
            "token_ids": np.ascontiguousarray(ids),
            "weights": np.ascontiguousarray(weights),
            "tokens": tokenizer.token_strings(ids),
        }
    arrays: dict[str, npt.NDArray[Any]] = {}
    if representations.dense is not None:
        dense = typed(representations.dense[row : row + 1], dtype)
        arrays["dense"] = dense.values[0]
        if dense.scales is not None:
            known["dense_scale"] = dense.scales[0]
    if representations.colbert is not None:
        colbert = typed(representations.colbert.row(row), dtype)
        arrays["colbert"] = colbert.values
        if colbert.scales is not None:
            arrays["colbert_scales"] = colbert.scales
    if not packed and sum(array.size for array in arrays.values()) <= PIECE_VALUES:  # most often a query
        whole = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        yield orjson.dumps({**known, **whole}, option=orjson.OPT_SERIALIZE_NUMPY)
        return
    write = packed_json if packed else numbers_json
    yield orjson.dumps(known, option=orjson.OPT_SERIALIZE_NUMPY)[:-1]
    for name, array in arrays.items():
        yield b',"%b":' % name.encode()
        yield from write(array)
    yield b"}"


def _route_json(route: Route) -> dict[str, Any]:
    if len(route.adapters) == 1:
        return {"adapter": route.adapters[0]}
    pairs = zip(route.adapters, route.weights, strict=True)
    return {"adapters": [{"adapter": name, "weight": weight} for name, weight in pairs]}


def numbers_json(array: npt.NDArray[Any]) -> Iterator[bytes]:
    """A vector, or a matrix some rows at a time."""
    yield b"["
    rows = PIECE_VALUES if array.ndim == 1 else max(1, PIECE_VALUES // array.shape[1])
    for start in range(0, len(array), rows):
        part = np.ascontiguousarray(array[start : start + rows])
        numbers = orjson.dumps(part, option=orjson.OPT_SERIALIZE_NUMPY)[1:-1]
        yield b"," + numbers if start else numbers
    yield b"]"


def packed_json(array: npt.NDArray[Any]) -> Iterator[bytes]:
    """An array as base64 of its little-endian values, with its shape and type."""
    yield b'{"data":"'
    values = np.ascontiguousarray(array, array.dtype.newbyteorder("<")).reshape(-1).view(np.uint8)
    for start in range(0, len(values), PIECE_BYTES):
        yield base64.b64encode(values[start : start + PIECE_BYTES].data)
    yield b'","shape":' + orjson.dumps(array.shape) + b',"dtype":' + orjson.dumps(array.dtype.name) + b"}"


def base64_json(array: Float32) -> bytes:
    """A small array as a string of base64 of its little-endian float32 values."""
    return b'"' + base64.b64encode(np.ascontiguousarray(array, "<f4").data) + b'"'
