"""What a router asks of a shard, and what that answers, as records that travel by `codec.py`.

`ShardQuery`, `ShardHits` and `HitParts` of the index travel as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any

import numpy as np

from tercet.index.bm25.query import WeighedWords, WordCounts
from tercet.index.catalog.defaults import SearchDefaults
from tercet.index.catalog.effort import DenseEffort
from tercet.index.documents.boosts import Boost
from tercet.index.documents.filters import Filter
from tercet.index.languages.sample import LanguageSample
from tercet.index.reading.examples import Example
from tercet.index.search.explanation import Explanation
from tercet.index.search.facet_parts import FieldCounts, WantedValues
from tercet.index.search.shard_search import Proposals, ShardQuery
from tercet.models.representations import Float64, Int32, Int64, Representations, Shape

MOST_WANTED = 2**31


@dataclass(frozen=True, slots=True)
class CandidatesRequest:
    """What a shard proposes for a query."""

    query: ShardQuery

    def __post_init__(self) -> None:
        limits, options = self.query.limits, self.query.options
        if (
            max(limits.dense, limits.sparse, limits.bm25, options.ef_search or 0, options.nprobe)
            >= MOST_WANTED
        ):
            raise ValueError(f"a limit of the query is not below {MOST_WANTED}")
        _check_words(self.query.words)


@dataclass(frozen=True, slots=True)
class HitsRequest:
    """The exact scores of what is left of a search's candidates. search: its name; wanted: how many are, None
    for all; least: the least score; numbers: of the candidates that are left, ascending, None for all.
    """

    search: str
    wanted: int | None
    least: float | None
    group_by: str | None
    content_bytes: int
    numbers: Int64 | None

    def __post_init__(self) -> None:
        if self.wanted is not None and not 0 < self.wanted < MOST_WANTED:
            raise ValueError(f"wanted is {self.wanted}")


@dataclass(frozen=True, slots=True)
class PartsRequest:
    """What hits alone are told of. numbers: of candidates, ascending."""

    search: str
    content_bytes: int
    numbers: Int64


@dataclass(frozen=True, slots=True)
class StatisticsRequest:
    """How many documents there are; with terms, how many have each term; with words, the same of these."""

    terms: bool
    words: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class FacetsRequest:
    """Values of some fields, each named once, counted over what a filter allows."""

    fields: tuple[WantedValues, ...]
    filter: Filter | None

    def __post_init__(self) -> None:
        if len({wanted.field for wanted in self.fields}) < len(self.fields):
            raise ValueError("a field is named twice")


@dataclass(frozen=True, slots=True)
class DocumentNames:
    """N documents: their ids, and collections where these are several."""

    ids: tuple[str, ...]
    collections: tuple[str | None, ...] | None

    def __post_init__(self) -> None:
        if self.collections is not None and len(self.collections) != len(self.ids):
            raise ValueError("each document is of a collection")

    @staticmethod
    def of(ids: Sequence[str], collections: Sequence[str | None] | None) -> DocumentNames:
        """Those of some documents."""
        return DocumentNames(tuple(ids), None if collections is None else tuple(collections))

    def take(self, numbers: Sequence[int]) -> DocumentNames:
        """Some of them, by their numbers among these."""
        names = self.collections
        return DocumentNames(
            tuple(self.ids[number] for number in numbers),
            None if names is None else tuple(names[number] for number in numbers),
        )


@dataclass(frozen=True, slots=True)
class TermFactors:
    """The idf of T terms, ascending, over all shards."""

    token_ids: Annotated[Int32, Shape("T")]
    idf: Annotated[Float64, Shape("T")]


@dataclass(frozen=True, slots=True)
class ExplanationsRequest:
    """Why documents have their scores. idf, words: weighed by what all shards know of them."""

    documents: DocumentNames
    query: Representations
    idf: TermFactors | None
    words: WeighedWords | None

    def __post_init__(self) -> None:
        _check_words(self.words)


@dataclass(frozen=True, slots=True)
class BoostsRequest:
    """What boosts add to documents, and how many encoded texts these have."""

    documents: DocumentNames
    boosts: tuple[Boost, ...]


@dataclass(frozen=True, slots=True)
class ExamplesRequest:
    """Stored documents as examples, with so many token vectors at most; or a window of one as a query."""

    documents: DocumentNames
    window: int | None
    most_tokens: int


@dataclass(frozen=True, slots=True)
class Description:
    """Settings of a collection, as `settings_record` has them, and its codebook; defaults and effort of
    searches. tag: of all this. languages: of its documents, which change as they do.
    """

    settings: Any
    codebook: bytes | None
    defaults: SearchDefaults | None
    effort: DenseEffort | None
    tag: str
    languages: LanguageSample


@dataclass(frozen=True, slots=True)
class CountChange:
    """What is added to n(t) and M(t) of X terms, ascending. since: the state that this leads from, None for
    no documents.
    """

    since: str | None
    terms: Annotated[Int32, Shape("X")]
    frequencies: Annotated[Int64, Shape("X")]
    masses: Annotated[Int64, Shape("X")]


@dataclass(frozen=True, slots=True)
class ShardState:
    """A snapshot of a shard. state: by which it can be had for a while; version: the state's name for people;
    documents: how many there are.
    """

    state: str
    version: str
    documents: int


@dataclass(frozen=True, slots=True)
class TermReport:
    """What a shard says of its documents. change: what comes to the counts of terms, None where it was not
    asked or is nothing; words: what it knows of those that were asked for.
    """

    at: ShardState
    change: CountChange | None = None
    words: WordCounts | None = None


@dataclass(frozen=True, slots=True)
class Begun:
    """A search that goes on by its name, and what it proposes, at a state."""

    at: ShardState
    search: str
    proposals: Proposals


@dataclass(frozen=True, slots=True)
class Candidates:
    """What a shard proposes for a query: nothing where it has another description than the router knows."""

    begun: Begun | None = None


@dataclass(frozen=True, slots=True)
class Facets:
    """The counts of F fields, in order, at a state."""

    at: ShardState
    fields: Annotated[tuple[FieldCounts, ...], Shape("F")]


@dataclass(frozen=True, slots=True)
class Explanations:
    """Those of R documents, in order."""

    documents: Annotated[tuple[Explanation, ...], Shape("R")]


@dataclass(frozen=True, slots=True)
class Boosts:
    """What B boosts add to N documents, and how many encoded texts these have together."""

    added: Annotated[Float64, Shape("B", "N")]
    encodings: int


@dataclass(frozen=True, slots=True)
class ExampleText:
    """A stored document as an example, and its text."""

    example: Example
    text: bytes


@dataclass(frozen=True, slots=True)
class Examples:
    """Those of R documents, in order; None of one that is not there."""

    documents: Annotated[tuple[ExampleText | None, ...], Shape("R")]


@dataclass(frozen=True, slots=True)
class StoredText:
    """A stored document as a query."""

    query: Representations
    text: bytes


def _check_words(words: WeighedWords | None) -> None:
    """Raises ValueError for words that cannot be searched by."""
    if words is None:
        return
    terms, counts, idf = words.terms, words.counts, words.idf
    if not (words.mean_length > 0 and np.isfinite(idf).all() and (idf > 0).all() and (counts > 0).all()):
        raise ValueError("words have counts, an idf and a mean length above 0")
    if len(terms) != len(idf) or any(one >= other for one, other in pairwise(terms)):
        raise ValueError("words ascend, each once, and each has an idf")
