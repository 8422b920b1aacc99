"""What all shards are asked for, as a message: made by a router, read by a shard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from tercet.index.bm25.query import WeighedWords
from tercet.index.candidates import CandidateLimits, DenseOptions, Weights
from tercet.index.documents.boosts import Boost, DecayBoost, parse_boost
from tercet.index.documents.filters import Filter, parse_filter, tree_of
from tercet.index.search.shard_search import ShardQuery
from tercet.models.representations import Representations, SparseRows, TokenVectors
from tercet.service.shard.messages import Array, Message


def query_values(query: ShardQuery) -> tuple[dict[str, Any], dict[str, Array | None]]:
    """The values and arrays of a query."""
    weights, limits, options = query.weights, query.limits, query.options
    values = {
        "weights": [weights.dense, weights.sparse, weights.colbert, weights.bm25],
        "limits": [limits.dense, limits.sparse, limits.bm25],
        "ef_search": options.ef_search,
        "nprobe": options.nprobe,
        "nearest": query.nearest,
        "filter": None if query.filter is None else tree_of(query.filter),
        "boosts": boost_values(query.boosts),
        "without": query.without,
        **words_values(query.words),
    }
    return values, {**representation_arrays(query.query), **words_arrays(query.words)}


def query_of(found: Message) -> ShardQuery:
    """The query of a message. Raises ValueError and its like, or InvalidQueryError for a filter or boost."""
    values = found.values
    return ShardQuery(
        representations_of(found),
        words_of(found),
        Weights(*_floats(values["weights"], 4)),
        CandidateLimits(*_counts(values["limits"], 3)),
        DenseOptions(
            None if values["ef_search"] is None else _count(values["ef_search"]), _count(values["nprobe"])
        ),
        nearest=bool(values["nearest"]),
        filter=filter_of(values),
        boosts=boosts_of(values),
        without=tuple(texts(values["without"])),
    )


def filter_of(values: Mapping[str, Any]) -> Filter | None:
    """The filter of a message's values. Raises InvalidQueryError."""
    return None if values["filter"] is None else parse_filter(values["filter"])


def boost_values(boosts: Sequence[Boost]) -> list[dict[str, Any]]:
    """Boosts as JSON, of which `parse_boost` makes them again."""
    return [
        {name: getattr(boost, name) for name in boost.__slots__}
        if isinstance(boost, DecayBoost)
        else {"filter": tree_of(boost.filter), "add": boost.add}
        for boost in boosts
    ]


def boosts_of(values: Mapping[str, Any]) -> tuple[Boost, ...]:
    """The boosts of a message's values. Raises InvalidQueryError."""
    return tuple(map(parse_boost, values["boosts"]))


def words_values(words: WeighedWords | None) -> dict[str, Any]:
    """The values of weighed words."""
    if words is None:
        return {"words": None}
    return {"words": words.terms, "mean_length": words.mean_length}


def words_arrays(words: WeighedWords | None) -> dict[str, Array | None]:
    """The arrays of weighed words."""
    return {} if words is None else {"word_counts": words.counts, "word_idf": words.idf}


def words_of(found: Message) -> WeighedWords | None:
    """The weighed words of a message."""
    if found.values["words"] is None:
        return None
    terms = texts(found.values["words"])
    mean_length = float(found.values["mean_length"])
    counts = found.array("word_counts", np.int64, len(terms))
    idf = found.array("word_idf", np.float64, len(terms))
    if not (mean_length > 0 and np.isfinite(idf).all() and (idf > 0).all() and (counts > 0).all()):
        raise ValueError("words have counts, an idf and a mean length above 0")
    if any(one >= other for one, other in pairwise(terms)):
        raise ValueError("words ascend, each once")
    return WeighedWords(tuple(terms), counts, idf, mean_length)


def representation_arrays(query: Representations) -> dict[str, Array | None]:
    """The arrays of one query's representations."""
    token_ids, weights = (None, None) if query.sparse is None else query.sparse.row(0)
    return {
        "dense": None if query.dense is None else query.dense[0],
        "token_ids": token_ids,
        "weights": weights,
        "colbert": None if query.colbert is None else query.colbert.vectors,
    }


def representations_of(found: Message) -> Representations:
    """Those of one query; what is not in a message it does not have."""
    dense = found.array_or_none("dense", np.float32, None)
    token_ids = found.array_or_none("token_ids", np.int32, None)
    vectors = found.array_or_none("colbert", np.float32, None, None)
    sparse = colbert = None
    if token_ids is not None:
        weights = found.array("weights", np.float32, len(token_ids))
        sparse = SparseRows(np.array([0, len(token_ids)]), token_ids, weights)
    if vectors is not None:
        colbert = TokenVectors(vectors, np.array([0, len(vectors)]))
    return Representations(
        np.zeros(1, np.int64), np.zeros(1, np.bool_), None if dense is None else dense[None], sparse, colbert
    )


def texts(values: Any) -> list[str]:
    """A list of texts. Raises TypeError for another."""
    if not isinstance(values, list) or not all(isinstance(each, str) for each in values):
        raise TypeError("a list of texts is wanted")
    return values


def _floats(values: Any, count: int) -> list[float]:
    if len(values) != count:
        raise ValueError(f"{count} numbers are wanted")
    return [float(each) for each in values]


def _counts(values: Any, count: int) -> list[int]:
    if len(values) != count:
        raise ValueError(f"{count} whole numbers are wanted")
    return [_count(each) for each in values]


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**31:
        raise ValueError(f"{value!r:.40} is no count")
    return value
