"""Answers of a collection as records with attributes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self

Position = int | str


@dataclass(frozen=True, slots=True)
class _Record:
    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> Self:
        """The record of a JSON object. Fields that this version does not know are left out."""
        return cls(**{field.name: answer[field.name] for field in fields(cls) if field.name in answer})


@dataclass(frozen=True, slots=True)
class Scores(_Record):
    """The parts of a score before weighting. None: the collection or the query lacks that side.

    bm25: of a collection with BM25, where it was weighed; boost: what boosts added; reranker: the logit of a
    re-ranker, where one was asked for.
    """

    dense: float | None = None
    sparse: float | None = None
    colbert: float | None = None
    bm25: float | None = None
    boost: float | None = None
    reranker: float | None = None


@dataclass(frozen=True, slots=True)
class Hit(_Record):
    """A document that a search found, with its score and the parts of that score.

    confidence: the probability that it answers the query, None where that is not known. collection: of which
    it is, where several are searched as one. partition: its own, in a partitioned collection. window: the
    part of its text that matches best, of a collection with windows. explanation, highlights,
    title_highlights: where they were asked for.
    """

    id: str
    score: float
    scores: Scores = field(default_factory=Scores)
    confidence: float | None = None
    title: str | None = None
    text: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    collection: str | None = None
    partition: str | None = None
    window: dict[str, Any] | None = None
    explanation: dict[str, Any] | None = None
    highlights: list[dict[str, int]] | None = None
    title_highlights: list[dict[str, int]] | None = None

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> Self:
        """The record of a hit in an answer."""
        return super(Hit, cls).of({**answer, "scores": Scores.of(answer.get("scores") or {})})


@dataclass(frozen=True, slots=True)
class SearchResult(_Record):
    """Hits, best first, and what the search went by.

    snapshot: the version that was searched; weights, candidates: those that were used; took_ms: of each
    stage; exhausted: there are no more hits; confident: whether the best hit is sure enough, None where that
    is not known; facets: of the fields that were asked for; partial: the shards that did not answer.
    """

    hits: list[Hit]
    collection: str = ""
    snapshot: str | None = None
    query: dict[str, Any] = field(default_factory=dict)
    weights: dict[str, float] = field(default_factory=dict)
    candidates: dict[str, int] = field(default_factory=dict)
    took_ms: dict[str, float] = field(default_factory=dict)
    exhausted: bool = False
    confident: bool | None = None
    facets: dict[str, Any] | None = None
    partial: dict[str, Any] | None = None

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> Self:
        """The record of the answer to a search."""
        return super(SearchResult, cls).of({**answer, "hits": [Hit.of(hit) for hit in answer["hits"]]})

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)


@dataclass(frozen=True, slots=True)
class Document(_Record):
    """A stored document. collection: of which it is, where several are read as one; partition: its own, in a
    partitioned collection.
    """

    id: str
    text: str
    title: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    collection: str | None = None
    partition: str | None = None


@dataclass(frozen=True, slots=True)
class Documents(_Record):
    """Stored documents in the order of the ids that were asked for. missing: ids that are not there."""

    documents: list[Document]
    missing: list[str]

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> Self:
        """The record of several documents in an answer."""
        return cls([Document.of(record) for record in answer["documents"]], answer["missing"])

    def __iter__(self) -> Iterator[Document]:
        return iter(self.documents)

    def __len__(self) -> int:
        return len(self.documents)

    def __getitem__(self, index: int) -> Document:
        return self.documents[index]


@dataclass(frozen=True, slots=True)
class Put(_Record):
    """What a put wrote. position: the collection's, after it; usage: tokens that were encoded; truncated:
    documents that were cut, where any was.
    """

    upserted: int
    position: Position
    usage: dict[str, int] = field(default_factory=dict)
    truncated: int = 0


@dataclass(frozen=True, slots=True)
class Updated(_Record):
    """How many documents got other metadata. position: the collection's, after it."""

    updated: int
    position: Position


@dataclass(frozen=True, slots=True)
class Deleted(_Record):
    """How many documents were deleted. position: the collection's, after it."""

    deleted: int
    position: Position
