"""Representations that a client brings along, of a query or of documents, as they come out of JSON."""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from models.representations import Float32, SparseRows, TokenVectors
from service.exceptions import InvalidRequestError

LARGEST_COMPONENT = 1e4  # beyond it a float32 sum could overflow; unit vectors are far below


class Sizes(Protocol):
    """What representations must fit: those of an encoder, or of a collection."""

    @property
    def dense_dimension(self) -> int: ...
    @property
    def colbert_dimension(self) -> int: ...
    @property
    def vocabulary_size(self) -> int: ...
    @property
    def name(self) -> str: ...


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


def dense_of(values: Sequence[float] | Float32, sizes: Sizes, param: str) -> Float32:
    """A dense vector float32[D]. Raises InvalidRequestError, naming `param`, where it has another length."""
    if len(values) != sizes.dense_dimension:
        raise InvalidRequestError(
            f"{param} has {len(values)} values; {sizes.name} has {sizes.dense_dimension}", param
        )
    return np.array(values, np.float32)


def sparse_of(token_ids: Sequence[int], weights: Sequence[float], sizes: Sizes, param: str) -> SparseRows:
    """One row of lexical weights, in order of its ids, without those that weigh 0.

    Raises InvalidRequestError, naming `param`, for ids that occur twice or are none of the vocabulary's.
    """
    if len(token_ids) != len(weights):
        raise InvalidRequestError(
            f"{param} has {len(token_ids)} token_ids and {len(weights)} weights; give one weight for each",
            param,
        )
    ids, values = np.array(token_ids, np.int64), np.array(weights, np.float32)
    beyond = ids[ids >= sizes.vocabulary_size]
    if len(beyond):
        raise InvalidRequestError(
            f"{param}.token_ids holds {beyond[0]}; {sizes.name} has {sizes.vocabulary_size} tokens",
            f"{param}.token_ids",
        )
    unique, counts = np.unique(ids, return_counts=True)
    if len(unique) != len(ids):
        repeated = unique[counts > 1][0]
        raise InvalidRequestError(f"{param}.token_ids holds {repeated} twice", f"{param}.token_ids")
    order = np.argsort(ids)
    order = order[values[order] > 0]
    return SparseRows(np.array([0, len(order)]), ids[order].astype(np.int32), values[order])


def colbert_of(rows: Sequence[Sequence[float]] | Float32, sizes: Sizes, param: str) -> TokenVectors:
    """The token vectors of one text.

    Raises InvalidRequestError, naming `param`, where one has another length.
    """
    for position, row in enumerate(rows):
        if len(row) != sizes.colbert_dimension:
            raise InvalidRequestError(
                f"{param}.{position} has {len(row)} values; {sizes.name} has {sizes.colbert_dimension}",
                f"{param}.{position}",
            )
    return TokenVectors(np.array(rows, np.float32), np.array([0, len(rows)]))
