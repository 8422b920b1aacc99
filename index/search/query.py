"""A query's representations, checked against a collection before any part of the index sees them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import get_args

import numpy as np
import numpy.typing as npt

from tercet.index.bm25.query import Bm25Query
from tercet.index.candidates import CandidateLimits, DenseOptions, Page, Weights
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.documents.declared import unsuited
from tercet.index.documents.metadata import FieldType
from tercet.index.errors import InvalidQueryError
from tercet.index.fusion import Fusion
from tercet.index.token_vectors.query import QueryTokens
from tercet.index.wording import shown
from tercet.models.representations import Float32, Int32, Representations

# Unit vectors and ReLU weights stay far below; beyond it float32 products could overflow.
LARGEST_VALUE = 1e6
COUNTED: tuple[FieldType, ...] = ("keyword", "boolean")
MAX_FACET_VALUES = 1000


@dataclass(frozen=True, slots=True)
class CheckedQuery:
    """One query. dense: float32[D] or None; token_ids: int32[T], ascending, with weights: float32[T];
    colbert: N token vectors or None; bm25: None without a text or where the collection has no BM25.
    """

    dense: Float32 | None
    token_ids: Int32
    weights: Float32
    colbert: QueryTokens | None
    bm25: Bm25Query | None = None


def check_query(query: Representations, settings: CollectionSettings) -> CheckedQuery:
    """Raises InvalidQueryError for several texts, another dimension, or a value that is not usable."""
    if len(query) != 1:
        raise InvalidQueryError(f"a search takes the representations of one text, not of {len(query)}")
    dense = None if query.dense is None else _vectors(query.dense, settings.dense_dimension, "dense")[0]
    colbert = None
    if query.colbert is not None and settings.stores_token_vectors:
        vectors = _vectors(query.colbert.row(0), settings.colbert_dimension, "colbert")
        colbert = QueryTokens.of(vectors, settings.token_codec, settings.codebook)
    token_ids, weights = np.empty(0, np.int32), np.empty(0, np.float32)
    if query.sparse is not None:
        token_ids, weights = check_lexical(*query.sparse.row(0), settings.vocabulary_size)
    return CheckedQuery(dense, token_ids, weights, colbert)


def check_weights(
    query: Representations, text: str | None, weights: Weights, settings: CollectionSettings
) -> None:
    """Raises InvalidQueryError where a weight is not usable, a side with a weight is not in the query, or
    no side has a weight.

    A collection that stores no token vectors ignores the colbert weight; one without BM25 refuses its weight.
    """
    check_bm25("weights.bm25", weights.bm25, settings)
    sides: list[tuple[str, float, object]] = [
        ("dense", weights.dense, query.dense),
        ("sparse", weights.sparse, query.sparse),
    ]
    if settings.stores_token_vectors:
        sides.append(("colbert", weights.colbert, query.colbert))
    if settings.bm25:
        sides.append(("bm25", weights.bm25, text))
    for side, weight, given in sides:
        if not math.isfinite(weight) or abs(weight) > LARGEST_VALUE:
            raise InvalidQueryError(f"weight of {side} is {weight}; use a number within {LARGEST_VALUE:g}")
        if weight != 0 and given is None:
            remedy = "give its text" if side == "bm25" else "encode it with all outputs"
            if side != "bm25" and side not in settings.encoder_sides:
                raise InvalidQueryError(lacking(side, settings.encoder, weight))
            raise InvalidQueryError(
                f"the query has no {side} representation; {remedy} or set its weight to 0"
            )
    if not any(weight for _, weight, _ in sides):
        names = " and ".join(side for side, _, _ in sides)
        raise InvalidQueryError(
            f"the weights of {names}, all that collection {settings.name!r} scores, are 0; raise one"
        )


def lacking(side: str, encoder: str, weight: float) -> str:
    """What to say of a weight that is given to a side which an encoder does not have."""
    return (
        f"the weight of {side} is {weight:g}, but encoder {encoder!r} has no such side; leave it out, or set "
        "it to 0"
    )


def check_bm25(name: str, value: float, settings: CollectionSettings) -> None:
    """Raises InvalidQueryError where an option of BM25, a weight or candidates, is given to a collection
    without it.
    """
    if value != 0 and not settings.bm25:
        raise InvalidQueryError(
            f"{name} is {value}, but collection {settings.name!r} has no BM25; leave it out, or create a "
            "collection with bm25: true"
        )


def check_options(top_k: int, limits: CandidateLimits, options: DenseOptions) -> None:
    """Raises InvalidQueryError for a count that is out of range."""
    for name, value, least in (
        ("top_k", top_k, 1),
        ("candidates.dense", limits.dense, 0),
        ("candidates.sparse", limits.sparse, 0),
        ("candidates.bm25", limits.bm25, 0),
        ("ef_search", 1 if options.ef_search is None else options.ef_search, 1),
        ("nprobe", options.nprobe, 1),
    ):
        if value < least:
            raise InvalidQueryError(f"{name} is {value}; use at least {least}")
    if limits.dense == limits.sparse == limits.bm25 == 0:
        raise InvalidQueryError("candidates are 0 for all sides, so nothing can be found; allow some on one")


def check_page(page: Page) -> None:
    """Raises InvalidQueryError for a page that cannot be: from below 0, or both from a place and a cursor."""
    if page.offset < 0:
        raise InvalidQueryError(f"offset is {page.offset}; use at least 0")
    if page.offset and page.after is not None:
        raise InvalidQueryError("a page begins at an offset or behind a hit, not both; leave one out")
    for name, value in (
        ("min_score", page.min_score),
        ("the score of search_after", None if page.after is None else page.after.score),
    ):
        if value is not None and not math.isfinite(value):
            raise InvalidQueryError(f"{name} is {value}; use a finite number")


def check_group_by(field: str | None, fields: Mapping[str, FieldType]) -> None:
    """Raises InvalidQueryError where the field is not declared, or no keyword."""
    if field is not None and fields.get(field) != "keyword":
        raise InvalidQueryError(f"group_by {unsuited(field, fields, ('keyword',))}")


def check_fusion(fusion: str) -> None:
    """Raises InvalidQueryError for the name of none."""
    if fusion not in get_args(Fusion):
        raise InvalidQueryError(f"fusion is {shown(fusion)}; use {' or '.join(get_args(Fusion))}")


def check_facets(wanted: Mapping[str, int], fields: Mapping[str, FieldType]) -> None:
    """Raises InvalidQueryError for a field that has no values to count, or a number of them out of range."""
    for field, limit in wanted.items():
        if fields.get(field) not in COUNTED:
            raise InvalidQueryError(f"facets {unsuited(field, fields, COUNTED)}")
        if not 1 <= limit <= MAX_FACET_VALUES:
            raise InvalidQueryError(
                f"facets of {field!r} are to have {limit} values; use 1 to {MAX_FACET_VALUES}"
            )


def _vectors(vectors: Float32, dimension: int, side: str) -> Float32:
    if vectors.ndim != 2 or vectors.shape[1] != dimension:
        raise InvalidQueryError(
            f"the query's {side} vectors have shape {vectors.shape}; the collection has dimension {dimension}"
        )
    _require_usable(vectors, f"a {side} value")
    return np.ascontiguousarray(vectors, np.float32)


def check_lexical(token_ids: Int32, weights: Float32, vocabulary_size: int) -> tuple[Int32, Float32]:
    """A query's terms, ascending, with weights above 0. Raises InvalidQueryError as `check_query`."""
    if len(token_ids) != len(weights):
        raise InvalidQueryError(
            f"{len(token_ids)} token ids came with {len(weights)} weights; give one for each"
        )
    order = np.argsort(token_ids, kind="stable")
    token_ids, weights = token_ids[order], weights[order]
    if len(token_ids) and not 0 <= token_ids[0] <= token_ids[-1] < vocabulary_size:
        raise InvalidQueryError(f"a token id of the query is outside the vocabulary of {vocabulary_size}")
    _require_usable(weights, "a sparse weight")
    if (weights < 0).any():
        raise InvalidQueryError("a sparse weight of the query is below 0; weights are 0 or more")
    if not weights.all():
        token_ids, weights = token_ids[weights > 0], weights[weights > 0]
    if (token_ids[1:] == token_ids[:-1]).any():
        raise InvalidQueryError("a token id occurs twice in the query; give each once")
    return token_ids.astype(np.int32, copy=False), weights.astype(np.float32, copy=False)


def _require_usable(values: npt.NDArray[np.floating], what: str) -> None:
    # A NaN fails the comparison too.
    if not (np.abs(values) <= LARGEST_VALUE).all():
        raise InvalidQueryError(f"{what} of the query is not finite or beyond {LARGEST_VALUE:g}")
