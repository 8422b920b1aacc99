"""What makes representations sound: the one check of all that was made elsewhere, or by an encoder just now.

Arrays have the names of a body of `/embed`. Faults of shape concern all texts; faults of values name theirs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tercet.models.representations import (
    UNIT_ERROR,
    Bool,
    Float32,
    Int32,
    Int64,
    Output,
    Representations,
    Route,
    lengths_of,
)

LARGEST_WEIGHT = 1e4  # of a token; sums of products stay far below what float32 holds
LARGEST_COMPONENT = 1e4  # of a vector that may have any length; unit vectors are far below
LARGEST_SIZE = 2**31 - 1


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


@dataclass(frozen=True, slots=True)
class Expected:
    """What is asked of representations.

    max_length: tokens of a text at most, None where no encoder counted them; unit: whether vectors must be of
    unit length, as all that are stored; blank: whether a text without weights and token vectors may have a
    dense vector of zeros, as blank documents are stored.
    """

    texts: int
    outputs: Sequence[Output]
    sizes: Sizes
    max_length: int | None = None
    unit: bool = True
    blank: bool = False


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong. array: where; problem: what, after a name; text: whose, None for all."""

    array: str
    problem: str
    text: int | None = None

    def __str__(self) -> str:
        return f"{self.array}{'' if self.text is None else f' of text {self.text}'} {self.problem}"


def first_fault(actual: Representations, expected: Expected) -> Fault | None:
    """None where they are sound."""
    return next(faults(actual, expected), None)


def faults(actual: Representations, expected: Expected) -> Iterator[Fault]:
    """All faults of values, or the first of shape, which leaves no values to look at."""
    shape = next(_shape_faults(actual, expected), None)
    if shape is not None:
        yield shape
        return
    yield from _count_faults(actual, expected)
    if actual.dense is not None:
        silent = _silent(actual) if expected.blank else None
        yield from _vector_faults("dense", actual.dense, None, unit=expected.unit, silent=silent)
    if actual.sparse is not None:
        indptr, ids, weights = actual.sparse.indptr, actual.sparse.token_ids, actual.sparse.weights
        size = expected.sizes.vocabulary_size
        yield from _at(
            "sparse_token_ids",
            (ids >= 0) & (ids < size),
            indptr,
            lambda item: f"holds {ids[item]}; {expected.sizes.name} has {size} tokens",
        )
        yield from _at(
            "sparse_token_ids",
            _ascending(ids, indptr),
            indptr,
            lambda item: f"holds {ids[item]} twice, or not in order; give each id once, ascending",
        )
        yield from _at(
            "sparse_weights",
            (weights > 0) & (weights <= LARGEST_WEIGHT),  # a NaN is neither
            indptr,
            lambda item: f"holds {weights[item]}; a weight is above 0 and at most {LARGEST_WEIGHT:g}",
        )
    if actual.colbert is not None:
        yield from _vector_faults(
            "colbert", actual.colbert.vectors, actual.colbert.offsets, unit=expected.unit
        )
    yield from _route_faults(actual.routes, expected.texts)


def offsets_problem(offsets: Int64, rows: int, items: int) -> str | None:
    """What is wrong with boundaries int64[rows + 1] of so many items, or None."""
    sound = offsets.shape == (rows + 1,) and offsets[0] == 0 and offsets[-1] == items
    if sound and (offsets[1:] >= offsets[:-1]).all():
        return None
    return f"must ascend from 0 to {items} in {rows + 1} steps"


def columns_problem(columns: int, wanted: int, name: str) -> str:
    """What to say of a vector of another dimension. name: whose dimension is wanted."""
    return f"has {columns} values; {name} has {wanted}"


def as_token_ids(ids: npt.NDArray[np.integer]) -> Int32:
    """Token ids as int32; what does not fit becomes -1, which is in no vocabulary."""
    if ids.dtype == np.int32:
        return ids.astype(np.int32, copy=False)
    return np.where((ids < 0) | (ids > LARGEST_SIZE), -1, ids).astype(np.int32)


def _shape_faults(actual: Representations, expected: Expected) -> Iterator[Fault]:
    texts, sizes = expected.texts, expected.sizes
    yield from _array_fault("tokens", actual.tokens, np.int64, texts)
    yield from _array_fault("truncated", actual.truncated, np.bool_, texts)
    for side in ("dense", "sparse", "colbert"):
        if (getattr(actual, side) is not None) != (side in expected.outputs):
            problem = "is missing; give it" if side in expected.outputs else "was not asked for"
            yield Fault(side, problem)
    if actual.dense is not None:
        yield from _array_fault("dense", actual.dense, np.float32, texts, sizes.dense_dimension, sizes.name)
    if actual.sparse is not None:
        ids = actual.sparse.token_ids
        yield from _array_fault("sparse_token_ids", ids, np.int32, None)
        yield from _array_fault("sparse_weights", actual.sparse.weights, np.float32, len(ids))
        yield from _offsets_fault("sparse_indptr", actual.sparse.indptr, texts, len(ids))
    if actual.colbert is not None:
        vectors = actual.colbert.vectors
        yield from _array_fault("colbert", vectors, np.float32, None, sizes.colbert_dimension, sizes.name)
        yield from _offsets_fault("colbert_offsets", actual.colbert.offsets, texts, len(vectors))


def _array_fault(
    name: str,
    array: npt.NDArray[Any],
    dtype: type[np.generic],
    rows: int | None,
    columns: int | None = None,
    whose: str = "",
) -> Iterator[Fault]:
    """rows: None for any number; columns: None for an array of one axis."""
    axes = 1 if columns is None else 2
    if array.dtype != dtype or array.ndim != axes:
        wanted = f"{np.dtype(dtype).name} of {axes} {'axis' if axes == 1 else 'axes'}"
        yield Fault(name, f"is {array.dtype.name} of {array.ndim}; it must be {wanted}")
    elif columns is not None and array.shape[1] != columns:
        yield Fault(name, columns_problem(array.shape[1], columns, whose))
    elif rows is not None and len(array) != rows:
        yield Fault(name, f"has {len(array)} rows; it must have {rows}")


def _offsets_fault(name: str, offsets: Int64, rows: int, items: int) -> Iterator[Fault]:
    yield from _array_fault(name, offsets, np.int64, rows + 1)
    problem = offsets_problem(offsets, rows, items)
    if problem is not None:
        yield Fault(name, problem)


def _count_faults(actual: Representations, expected: Expected) -> Iterator[Fault]:
    most = expected.max_length
    if most is None:
        return
    tokens = actual.tokens
    yield from _at(
        "tokens",
        (tokens >= 0) & (tokens <= most),
        None,
        lambda text: f"says {tokens[text]}; a text has 0 to {most}",
    )
    if actual.colbert is not None:
        counts = lengths_of(actual.colbert.offsets)
        yield from _at(
            "colbert",
            counts <= tokens,
            None,
            lambda text: f"has {counts[text]} vectors for {tokens[text]} tokens",
        )


def _silent(actual: Representations) -> Bool:
    """Which texts have neither weights nor token vectors."""
    silent = np.ones(len(actual), np.bool_)
    if actual.sparse is not None:
        silent &= lengths_of(actual.sparse.indptr) == 0
    if actual.colbert is not None:
        silent &= lengths_of(actual.colbert.offsets) == 0
    return silent


def _vector_faults(
    name: str, vectors: Float32, offsets: Int64 | None, *, unit: bool, silent: Bool | None = None
) -> Iterator[Fault]:
    """Of float32[N, D]: whose length is not 1, or else which have a value out of range.

    silent: bool[N], which may be zeros.
    """
    if not unit:
        sound: Bool = np.logical_and.reduce(np.abs(vectors) <= LARGEST_COMPONENT, axis=1)
        limit = f"has a value beyond {LARGEST_COMPONENT:g}, or none"
        yield from _at(name, sound, offsets, lambda _: limit)
        return
    with np.errstate(over="ignore", invalid="ignore"):
        lengths: Float32 = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
        near: Bool = np.abs(lengths - 1) <= UNIT_ERROR  # a NaN is not
    if silent is not None:
        near |= silent & (lengths == 0)
    yield from _at(
        name,
        near,
        offsets,
        lambda item: f"has a vector of length {lengths[item]:.4g}; give unit vectors, as /embed does",
    )


def _ascending(ids: Int32, indptr: Int64) -> Bool:
    """Whether each id is above the one before it in its row."""
    ascending = np.ones(len(ids), np.bool_)
    np.greater(ids[1:], ids[:-1], out=ascending[1:])
    ascending[indptr[:-1][indptr[:-1] < len(ids)]] = True
    return ascending


def _route_faults(routes: tuple[Route | None, ...] | None, texts: int) -> Iterator[Fault]:
    if routes is None:
        return
    if len(routes) != texts:
        yield Fault("routes", f"has {len(routes)} rows; it must have {texts}")
    for text, route in enumerate(routes):
        if route is not None and not _is_route(route):
            yield Fault("routes", "is no choice: adapters, and weights that sum to 1", text)


def _is_route(route: Route) -> bool:
    named = all(adapter is None or isinstance(adapter, str) for adapter in route.adapters)
    weighed = all(isinstance(weight, int | float) and 0 <= weight <= 1 for weight in route.weights)
    if not (named and weighed and 0 < len(route.adapters) == len(route.weights)):
        return False
    return math.isclose(math.fsum(route.weights), 1, abs_tol=UNIT_ERROR)


def _at(array: str, sound: Bool, offsets: Int64 | None, problem: Callable[[int], str]) -> Iterator[Fault]:
    """A fault for each item that is not sound. offsets: of the texts in the items; None for one of each."""
    if sound.all():
        return
    for item in np.flatnonzero(~sound).tolist():
        text = item if offsets is None else int(np.searchsorted(offsets, item, "right")) - 1
        yield Fault(array, problem(item), text)
