"""What travels between routers and shards in another form than it has in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from tercet.index.documents.boosts import Boost, DecayBoost, parse_boost
from tercet.index.documents.filters import Filter, parse_filter, tree_of
from tercet.models.representations import Float32, Int32, Representations, Shape, SparseRows, TokenVectors


@dataclass(frozen=True, slots=True)
class QueryVectors:
    """The representations of one query."""

    dense: Float32 | None
    token_ids: Annotated[Int32, Shape("T")] | None
    weights: Annotated[Float32, Shape("T")] | None
    colbert: Annotated[Float32, Shape(None, None)] | None

    @staticmethod
    def of(query: Representations) -> QueryVectors:
        """Those of a query."""
        token_ids, weights = (None, None) if query.sparse is None else query.sparse.row(0)
        return QueryVectors(
            None if query.dense is None else query.dense[0],
            token_ids,
            weights,
            None if query.colbert is None else query.colbert.vectors,
        )

    @property
    def representations(self) -> Representations:
        """The query; what is not here it does not have. Raises ValueError."""
        sparse = colbert = None
        if (self.token_ids is None) != (self.weights is None):
            raise ValueError("token ids and weights come together")
        if self.token_ids is not None and self.weights is not None:
            sparse = SparseRows(np.array([0, len(self.token_ids)]), self.token_ids, self.weights)
        if self.colbert is not None:
            colbert = TokenVectors(self.colbert, np.array([0, len(self.colbert)]))
        dense = None if self.dense is None else self.dense[None]
        return Representations(np.zeros(1, np.int64), np.zeros(1, np.bool_), dense, sparse, colbert)


def boost_value(boost: Boost) -> dict[str, Any]:
    """A boost as JSON, of which `parse_boost` makes it again."""
    if isinstance(boost, DecayBoost):
        return {name: getattr(boost, name) for name in boost.__slots__}
    return {"filter": tree_of(boost.filter), "add": boost.add}


def text_bytes(text: str) -> bytes:
    """A document's text, which may have lone surrogates."""
    return text.encode(errors="surrogatepass")


def bytes_text(content: bytes) -> str:
    """The text of `text_bytes`. Raises ValueError."""
    return content.decode(errors="surrogatepass")


Conversion = tuple[Any, Callable[[Any], Any], Callable[[Any], Any]]

CONVERTED: Mapping[Any, Conversion] = {
    bytes: (
        npt.NDArray[np.uint8],
        lambda content: np.frombuffer(content, np.uint8),
        lambda found: found.tobytes(),
    ),
    Representations: (QueryVectors, QueryVectors.of, lambda found: found.representations),
    Filter: (Any, tree_of, parse_filter),
    Boost: (Any, boost_value, parse_boost),
}
"""By type: what it travels as, what makes that of it, and what makes it again of that, or raises
ValueError or InvalidQueryError.
"""
