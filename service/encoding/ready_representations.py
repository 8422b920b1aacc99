"""Representations that a client brings along, of a query or of documents, as they come out of JSON."""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence

import numpy as np

from tercet.models.representations import OUTPUTS, Float32, Output, Representations, SparseRows, TokenVectors
from tercet.models.soundness import (
    LARGEST_COMPONENT,
    Expected,
    Sizes,
    as_token_ids,
    columns_problem,
    first_fault,
)
from tercet.service.exceptions import InvalidRequestError

# Array of one text → where it is in JSON, below the text.
PATHS = {
    "dense": "dense",
    "sparse_indptr": "sparse",
    "sparse_token_ids": "sparse.token_ids",
    "sparse_weights": "sparse.weights",
}


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
        raise InvalidRequestError(
            f"{param}.data has {len(values)} values, but its shape is {list(shape)}", param
        )
    if not (np.abs(values) <= LARGEST_COMPONENT).all():
        raise InvalidRequestError(f"{param} has a value beyond {LARGEST_COMPONENT:g}, or none", param)
    return values.reshape(shape).astype(np.float32)


def ready_text(
    dense: Sequence[float] | Float32 | None,
    sparse: tuple[Sequence[int], Sequence[float]] | None,
    colbert: Sequence[Sequence[float]] | Float32 | None,
    sizes: Sizes,
    param: str,
    *,
    needed: Sequence[Output] = (),
    unit: bool = True,
) -> Representations:
    """Representations of one text, from lists or arrays of finite numbers, checked.

    sparse: token ids and weights, in any order; those that weigh 0 are left out. needed: sides that must be
    there; unit: whether vectors must be of unit length. Raises InvalidRequestError that names the value below
    `param` that is missing or wrong.
    """
    given: dict[Output, object] = {"dense": dense, "sparse": sparse, "colbert": colbert}
    for side in needed:
        if given[side] is None:
            raise InvalidRequestError(f"{param}.{side} is missing; give it", f"{param}.{side}")
    representations = Representations(
        np.zeros(1, np.int64),
        np.zeros(1, np.bool_),
        None if dense is None else np.array(dense, np.float32)[None, :],
        None if sparse is None else _sparse_row(*sparse, f"{param}.sparse"),
        None if colbert is None else _token_vectors(colbert, sizes, f"{param}.colbert"),
    )
    outputs = [side for side in OUTPUTS if given[side] is not None]
    fault = first_fault(representations, Expected(1, outputs, sizes, unit=unit, blank=True))
    if fault is not None:
        path = f"{param}.{PATHS.get(fault.array, fault.array)}"
        raise InvalidRequestError(f"{path} {fault.problem}", path)
    return representations


def _sparse_row(token_ids: Sequence[int], weights: Sequence[float], param: str) -> SparseRows:
    """One row of lexical weights, in order of its ids, without those that weigh 0."""
    if len(token_ids) != len(weights):
        raise InvalidRequestError(
            f"{param} has {len(token_ids)} token_ids and {len(weights)} weights; give one weight for each",
            param,
        )
    ids, values = np.array(token_ids, np.int64), np.array(weights, np.float32)
    order = np.argsort(ids, kind="stable")
    order = order[values[order] != 0]
    return SparseRows(np.array([0, len(order)]), as_token_ids(ids[order]), values[order])


def _token_vectors(rows: Sequence[Sequence[float]] | Float32, sizes: Sizes, param: str) -> TokenVectors:
    """The token vectors of one text; lists may be of different lengths, which arrays cannot be."""
    for position, row in enumerate(rows):
        if len(row) != sizes.colbert_dimension:
            problem = columns_problem(len(row), sizes.colbert_dimension, sizes.name)
            raise InvalidRequestError(f"{param}.{position} {problem}", f"{param}.{position}")
    return TokenVectors(
        np.array(rows, np.float32).reshape(len(rows), sizes.colbert_dimension), np.array([0, len(rows)])
    )
