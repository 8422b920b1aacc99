"""A query made of stored documents: for others like some of them, and unlike others.

Dense vectors and lexical weights are combined as Rocchio's (1971; Manning, Raghavan and Schütze 2008, section
9.1.1): the mean of what is wanted, minus `AWAY` times that of what is not; a lexical weight that falls below
0 is left out. Late interaction asks for the nearest of a document's token vectors and knows no minus, so its
vectors are those of the documents that are wanted, as many of each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import numpy.typing as npt

from tercet.index.errors import DocumentNotFoundError, InvalidQueryError
from tercet.index.segments.segment import Segment
from tercet.index.segments.stored import StoredQuery
from tercet.models.representations import (
    Float32,
    Float64,
    Int32,
    Representations,
    Shape,
    SparseRows,
    TokenVectors,
)

MOST_EXAMPLES = 100  # wanted, and as many unwanted
# Usual is 0.2, of many judged documents; here examples are few, and dense vectors are all near each other.
AWAY = 0.5
MOST_TERMS = 1024
MOST_TOKENS = 512

NAMED = 10  # ids of missing documents in a message


@dataclass(frozen=True, slots=True)
class Example:
    """What is stored of a document. dense: float32[D], the normalized mean of its windows; token_ids:
    int32[T], ascending, with weights: float32[T]; tokens: float32[L, C], some of all windows, None for the
    codec none.
    """

    dense: Annotated[Float32, Shape("D")]
    token_ids: Annotated[Int32, Shape("T")]
    weights: Annotated[Float32, Shape("T")]
    tokens: Annotated[Float32, Shape("L", "C")] | None

    @staticmethod
    def of(segment: Segment, row: int, most_tokens: int) -> Example:
        """A document of a segment, with so many token vectors at most, spread evenly."""
        texts, _ = segment.texts_of(np.array([row]))
        store, tokens = segment.token_vectors, None
        if store is not None:
            first, last = int(store.offsets[texts[0]]), int(store.offsets[texts[-1] + 1])
            count = min(last - first, most_tokens)
            tokens = store.vectors(first + np.arange(count) * (last - first - 1) // max(1, count - 1))
        return Example(_normalized(_mean(segment.vectors[texts])), *segment.forward.row(row), tokens)


Reader = Callable[[Sequence[str], int], Sequence[tuple[Example, str] | None]]


def check_examples(like: Sequence[str], unlike: Sequence[str]) -> None:
    """Raises InvalidQueryError for no ids that are wanted, too many, or one that is unwanted, too."""
    if not like:
        raise InvalidQueryError("no document is given that others shall be like; give the id of one at least")
    for name, ids in (("like", like), ("unlike", unlike)):
        if len(ids) > MOST_EXAMPLES:
            raise InvalidQueryError(f"{name} has {len(ids)} ids; the limit is {MOST_EXAMPLES}")
    both = next((id for id in unlike if id in set(like)), None)
    if both is not None:
        raise InvalidQueryError(f"document {both[:80]!r} is in like and in unlike; leave it out of one")


def examples_query(collection: str, like: Sequence[str], unlike: Sequence[str], read: Reader) -> StoredQuery:
    """A query for documents like some, unlike others; its text is theirs that it shall be like, one after the
    other.

    read: gives what `Example` has of documents by their ids, with so many token vectors of each at most, and
    their texts; None of one that is not there. Raises DocumentNotFoundError, which names those, and as
    `check_examples`.
    """
    check_examples(like, unlike)
    like, unlike = list(dict.fromkeys(like)), list(dict.fromkeys(unlike))
    documents = [*read(like, MOST_TOKENS // len(like)), *(read(unlike, 0) if unlike else ())]
    missing = [id for id, document in zip([*like, *unlike], documents, strict=True) if document is None]
    if missing:
        named = ", ".join(f"{id[:80]!r}" for id in missing[:NAMED])
        others = f" and {len(missing) - NAMED} others" if len(missing) > NAMED else ""
        raise DocumentNotFoundError(f"collection {collection!r} has no document {named}{others}")
    there = [document for document in documents if document is not None]
    examples, texts = [example for example, _ in there], [text for _, text in there]
    query = query_of(examples[: len(like)], examples[len(like) :])
    return StoredQuery(query, "\n".join(texts[: len(like)]))


def query_of(like: Sequence[Example], unlike: Sequence[Example]) -> Representations:
    """The representations of a query for what is like the ones, at least one, and unlike the others."""
    dense = _mean([example.dense for example in like])
    if unlike:
        dense = dense - AWAY * _mean([example.dense for example in unlike])
    vectors, tokens = [example.tokens for example in like if example.tokens is not None], None
    if vectors:
        tokens = TokenVectors(np.concatenate(vectors), np.array([0, sum(map(len, vectors))]))
    return Representations(
        np.zeros(1, np.int64), np.zeros(1, np.bool_), _normalized(dense)[None], _terms(like, unlike), tokens
    )


def _mean(vectors: Sequence[Float32] | npt.NDArray[np.float16]) -> Float64:
    mean: Float64 = np.mean(vectors, axis=0, dtype=np.float64)
    return mean


def _normalized(vector: Float64) -> Float32:
    """Of length 1; that of a blank document stays 0."""
    length = float(np.linalg.norm(vector))
    return (vector / length if length else vector).astype(np.float32)


def _terms(like: Sequence[Example], unlike: Sequence[Example]) -> SparseRows:
    """The terms of the highest weights, `MOST_TERMS` at most, as one row."""
    shares = [1 / len(like)] * len(like) + [-AWAY / max(1, len(unlike))] * len(unlike)
    examples = [*like, *unlike]
    weights = [
        share * example.weights.astype(np.float64) for share, example in zip(shares, examples, strict=True)
    ]
    token_ids, columns = np.unique(
        np.concatenate([example.token_ids for example in examples]), return_inverse=True
    )
    sums = np.zeros(len(token_ids))
    np.add.at(sums, columns, np.concatenate(weights))
    best = np.argsort(-sums, kind="stable")[:MOST_TERMS]
    kept = np.sort(best[sums[best] > 0])
    return SparseRows(np.array([0, len(kept)]), token_ids[kept], sums[kept].astype(np.float32))
