"""Records of a search: what is asked, what is found. NumPy and plain Python only."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from tercet.models.representations import OUTPUTS, Float64, Shape

DEFAULT_CANDIDATES = 200


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights of the scores in the sum; 0 leaves a side out, and BM25 is out unless it is asked for."""

    dense: float = 1.0
    sparse: float = 1.0
    colbert: float = 1.0
    bm25: float = 0.0

    @property
    def dense_alone(self) -> bool:
        """Whether a document's sum is its dense score, times this weight."""
        return self.dense > 0 and self.sparse == self.colbert == self.bm25 == 0

    def of(self, sides: Collection[str]) -> Weights:
        """With 0 for what is not among the outputs of an encoder."""
        dense, sparse, colbert = (getattr(self, side) if side in sides else 0.0 for side in OUTPUTS)
        return Weights(dense, sparse, colbert, self.bm25)

    def array(self, sides: int) -> npt.NDArray[np.float64]:
        """The first of them, float64[sides]: dense, sparse, colbert, bm25, and that of boosts, which is 1."""
        return np.array([self.dense, self.sparse, self.colbert, self.bm25, 1.0][:sides], np.float64)


@dataclass(frozen=True, slots=True)
class CandidateLimits:
    """How many documents each retriever proposes over all segments; 0 turns one off.

    BM25 proposes only where it has a weight.
    """

    dense: int = DEFAULT_CANDIDATES
    sparse: int = DEFAULT_CANDIDATES
    bm25: int = DEFAULT_CANDIDATES

    def used(self, weights: Weights) -> CandidateLimits:
        """What a search with these weights takes of each."""
        return self if weights.bm25 else CandidateLimits(self.dense, self.sparse, 0)

    def with_more(self, count: int) -> CandidateLimits:
        """So many more of each side that proposes any, for documents that are not to be found."""
        return CandidateLimits(
            *(limit + count * (limit > 0) for limit in (self.dense, self.sparse, self.bm25))
        )


@dataclass(frozen=True, slots=True)
class DenseOptions:
    """Effort of the approximate dense search: FAISS `efSearch` (HNSW), None for what is usual for as many as
    are wanted, and `nprobe` (of lists).
    """

    ef_search: int | None = None
    nprobe: int = 64


@dataclass(frozen=True, slots=True)
class Cursor:
    """A place in the order of hits: right behind the one of this score and id, whether it is there or not.

    collection: the hit's, where several are searched as one; without it, behind those of all of them.
    """

    score: float
    id: str
    collection: str | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """Which of the ordered hits are wanted: from a place on, or behind a cursor, and none below a score."""

    offset: int = 0
    after: Cursor | None = None
    min_score: float | None = None


@dataclass(frozen=True, slots=True)
class Document:
    """A stored document. Its encoded text is the title, a line break and the text.

    collection: where it was found, if several collections are searched as one.
    """

    id: str
    text: str
    title: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    collection: str | None = None

    @property
    def head(self) -> str:
        """What precedes the text: the title's line, or nothing."""
        return f"{self.title}\n" if self.title else ""

    @property
    def encoded_text(self) -> str:
        """What the encoder sees."""
        return self.head + self.text


@dataclass(frozen=True, slots=True)
class Window:
    """One of a document's windows: its place among them, its first character and its end in the text."""

    index: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Scores:
    """The scores of one query and one document, unweighted; None where a side is not stored. boost: what was
    added to their sum, None where no boosts were asked for; reranker: a cross-encoder's logit, which is no
    part of the sum, None where none was asked.
    """

    dense: float
    sparse: float
    colbert: float | None
    bm25: float | None = None
    boost: float | None = None
    reranker: float | None = None


@dataclass(frozen=True, slots=True)
class Hit:
    """One result: its document, score, and that score's parts.

    window: the one that matches best, None in a collection without windows.
    """

    document: Document
    score: float
    scores: Scores
    window: Window | None = None


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Hits, best first; ties in order of id, then of collection. Times in seconds. lost: parts of a divided
    collection that did not answer, where hits without theirs were allowed. leaders: float64[n, 3], the scores
    of the encoder's sides of the best candidates by the weights `leading` of a `SnapshotQuery`; None where
    they were not asked for, or can only be found by a search of their own.
    """

    hits: list[Hit]
    snapshot: str
    retrieve_seconds: float
    score_seconds: float
    lost: tuple[str, ...] = ()
    leaders: Annotated[Float64, Shape("n", 3)] | None = None


@dataclass(frozen=True, slots=True)
class FacetValue:
    """A value of a field, and how many documents have it."""

    value: str | bool
    count: int


@dataclass(frozen=True, slots=True)
class Facet:
    """The commonest values of a field, of equally common ones the smaller first; how many distinct ones there
    are in all, and how many documents have none. unlisted: so many documents a value may have that is not
    here and perhaps should be; None where no value is missing.
    """

    values: list[FacetValue]
    distinct: int
    missing: int
    unlisted: int | None = None
