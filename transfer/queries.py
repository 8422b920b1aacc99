"""A query in a collection's terms, to be written in another system's language."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import orjson

from tercet.index.candidates import DEFAULT_CANDIDATES, Weights
from tercet.index.search.query import check_query
from tercet.index.snapshot import Snapshot
from tercet.models.representations import Float32, Int32, Representations

CANDIDATES = DEFAULT_CANDIDATES  # that each of the two retrievers proposes
HITS = 10


@dataclass(frozen=True, slots=True)
class CollectionQuery:
    """One query. text: for people; dense: float32[D]; token_ids: int32[T], ascending; weights: float32[T],
    which are times the collection's idf where it has one; colbert: float32[N, C], None where the collection
    stores no token vectors; sides: the weights of the sum.
    """

    text: str
    dense: Float32
    token_ids: Int32
    weights: Float32
    colbert: Float32 | None
    sides: Weights

    @staticmethod
    def of(
        snapshot: Snapshot, text: str, encoded: Representations, sides: Weights, *, colbert: bool = True
    ) -> CollectionQuery:
        """The query of a text and its representations. Raises InvalidQueryError.

        colbert: whether token vectors were exported.
        """
        checked = check_query(encoded, snapshot.settings)
        weights = checked.weights
        if snapshot.idf is not None:
            weights = snapshot.idf.weighted(checked.token_ids, weights)
        dense = np.zeros(snapshot.settings.dense_dimension, np.float32)
        return CollectionQuery(
            text,
            dense if checked.dense is None else checked.dense,
            checked.token_ids,
            weights,
            checked.colbert.vectors if colbert and checked.colbert is not None else None,
            sides,
        )

    @property
    def terms(self) -> dict[str, float]:
        """The lexical weights by token id, both as JSON has them."""
        return dict(zip(map(str, self.token_ids.tolist()), shortest(self.weights), strict=True))

    @property
    def for_script(self) -> dict[str, object]:
        """What a Python script of NumPy is told of it, by name."""
        terms = ", ".join(f"{term}: {weight!r}" for term, weight in self.terms.items())
        return {
            "text": one_line(self.text),
            "candidates": CANDIDATES,
            "hits": HITS,
            "dense": numbers(self.dense),
            "terms": f"{{{terms}}}",
            "colbert": numbers(self.colbert) if self.colbert is not None else "[]",
            "sides": [self.sides.dense, self.sides.sparse, self.sides.colbert],
        }


def shortest(values: Float32) -> list[float]:
    """float32[N] as the numbers of fewest digits that are these float32 again."""
    parsed: list[float] = orjson.loads(numbers(values))
    return parsed


def numbers(values: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> str:
    """An array as JSON, which is also Python: of float32 as few digits as give them back."""
    return orjson.dumps(np.ascontiguousarray(values), option=orjson.OPT_SERIALIZE_NUMPY).decode()


def one_line(text: str) -> str:
    """A text for a comment: without line breaks, and short."""
    words = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return words if len(words) <= 100 else words[:99] + "…"
