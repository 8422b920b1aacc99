"""Ready representations of a query, checked against the encoder and against what the search needs."""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence

import numpy as np

from index.candidates import CandidateLimits, Weights
from models.encoder import EncoderInfo
from models.representations import Float32, Representations, SparseRows, TokenVectors
from service.exceptions import InvalidRequestError

LARGEST_COMPONENT = 1e4  # beyond it a float32 sum could overflow; unit vectors are far below


def ready_query(
    dense: Sequence[float] | Float32 | None,
    sparse: tuple[Sequence[int], Sequence[float]] | None,
    colbert: Sequence[Sequence[float]] | Float32 | None,
    info: EncoderInfo,
) -> Representations:
    """One query from lists or arrays of finite numbers; sparse is token ids and weights.

    Raises InvalidRequestError that names the side whose shape or ids do not fit the encoder.
    """
    return Representations(
        np.zeros(1, np.int64),
        np.zeros(1, np.bool_),
        None if dense is None else _dense(dense, info)[None, :],
        None if sparse is None else _sparse(*sparse, info),
        None if colbert is None else _colbert(colbert, info),
    )


def unpacked(data: str, shape: Sequence[int], axes: int, param: str) -> Float32:
    """The array of this shape, of one axis or two, whose little-endian float32 values are in base64.

    Raises InvalidRequestError, naming `param`, where data and shape do not fit or a value is not finite.
    """
    if len(shape) != axes:
        raise InvalidRequestError(f"{param}.shape is {list(shape)}; it has {axes} numbers", f"{param}.shape")
    try:
        values = np.frombuffer(base64.b64decode(data, validate=True), "<f4")
    except ValueError as error:  # no base64, or no multiple of 4 bytes
        raise InvalidRequestError(f"{param}.data is no base64 of float32 values: {error}", param) from error
    if len(values) != math.prod(shape):
        raise InvalidRequestError(f"{param}.data has {len(values)} values, but its shape is {shape}", param)
    if not (np.abs(values) <= LARGEST_COMPONENT).all():
        raise InvalidRequestError(f"{param} has a value beyond {LARGEST_COMPONENT:g}, or none", param)
    return values.reshape(shape).astype(np.float32)


def require_sides(
    query: Representations, text: str | None, weights: Weights, candidates: CandidateLimits
) -> None:
    """Raises InvalidRequestError for a side that is missing, but has a weight or proposes candidates."""
    if weights.bm25 and text is None:
        raise InvalidRequestError("query.text is missing: give it, or set weights.bm25 to 0", "query.text")
    needed = {
        "dense": weights.dense or candidates.dense,
        "sparse": weights.sparse or candidates.sparse,
        "colbert": weights.colbert,
    }
    for side, is_needed in needed.items():
        if is_needed and getattr(query, side) is None:
            remedy = f"set weights.{side} to 0" + (
                "" if side == "colbert" else f" and candidates.{side} to 0"
            )
            raise InvalidRequestError(f"query.{side} is missing: give it, or {remedy}", f"query.{side}")


def _dense(values: Sequence[float] | Float32, info: EncoderInfo) -> Float32:
    if len(values) != info.dense_dimension:
        raise InvalidRequestError(
            f"query.dense has {len(values)} values; {info.name} has {info.dense_dimension}", "query.dense"
        )
    return np.array(values, np.float32)


def _sparse(token_ids: Sequence[int], weights: Sequence[float], info: EncoderInfo) -> SparseRows:
    param = "query.sparse"
    if len(token_ids) != len(weights):
        raise InvalidRequestError(
            f"{param} has {len(token_ids)} token_ids and {len(weights)} weights; give one weight for each",
            param,
        )
    ids, values = np.array(token_ids, np.int64), np.array(weights, np.float32)
    beyond = ids[ids >= info.vocabulary_size]
    if len(beyond):
        raise InvalidRequestError(
            f"{param}.token_ids holds {beyond[0]}; {info.name} has {info.vocabulary_size} tokens",
            f"{param}.token_ids",
        )
    unique, counts = np.unique(ids, return_counts=True)
    if len(unique) != len(ids):
        repeated = unique[counts > 1][0]
        raise InvalidRequestError(f"{param}.token_ids holds {repeated} twice", f"{param}.token_ids")
    order = np.argsort(ids)
    order = order[values[order] > 0]
    return SparseRows(np.array([0, len(order)]), ids[order].astype(np.int32), values[order])


def _colbert(rows: Sequence[Sequence[float]] | Float32, info: EncoderInfo) -> TokenVectors:
    param = "query.colbert"
    if len(rows) > info.max_length:
        raise InvalidRequestError(
            f"{param} has {len(rows)} vectors; {info.name} makes at most {info.max_length}", param
        )
    for position, row in enumerate(rows):
        if len(row) != info.colbert_dimension:
            raise InvalidRequestError(
                f"{param}.{position} has {len(row)} values; {info.name} has {info.colbert_dimension}",
                f"{param}.{position}",
            )
    return TokenVectors(np.array(rows, np.float32), np.array([0, len(rows)]))
