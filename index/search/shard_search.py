"""One shard's part of a search over several, in two rounds.

First a shard proposes candidates. Whoever asks cuts what all shards propose, as one machine cuts over
segments (`index/search/merging.py`), and has each shard score those of its own that are left. What tells of
all shards comes with the question: lexical weights that are multiplied by the idf of all, and words that are
weighed by what all know of them. A search holds the segments that it began with, so both rounds are of one
snapshot.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from tercet.index.bm25.query import WeighedWords
from tercet.index.candidates import CandidateLimits, DenseOptions, Page, Weights, Window
from tercet.index.documents.boosts import Boost
from tercet.index.documents.conditions import Condition
from tercet.index.documents.filters import Filter
from tercet.index.documents.metadata import FieldType
from tercet.index.files.packed_bytes import PackedBytes
from tercet.index.fusion import SIDES
from tercet.index.scoring import DECIMALS
from tercet.index.search.best_window import best_windows
from tercet.index.search.boosts import boosts_at
from tercet.index.search.bounds import QuickScores, bounds_of
from tercet.index.search.choice import Choice
from tercet.index.search.exact_scores import Candidates, WindowScores, dense_scores, scored
from tercet.index.search.groups import GroupValues, group_values
from tercet.index.search.late_interaction import late_scores
from tercet.index.search.query import CheckedQuery, check_group_by
from tercet.index.search.ranking import rank
from tercet.index.search.retrieval import all_rows, ids_at, numbers_of, propose, rows_of, united
from tercet.index.segments.segment import Segment
from tercet.models.representations import Float32, Float64, Int64, Representations, Shape

NONE = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class ShardQuery:
    """What all shards are asked. query: its lexical weights are multiplied by the idf of all shards; words:
    of its text, weighed by what all know of them; nearest: whether exact dense scores alone say what is left.
    """

    query: Representations
    words: WeighedWords | None
    weights: Weights
    limits: CandidateLimits
    options: DenseOptions
    nearest: bool = False
    filter: Filter | None = None
    boosts: tuple[Boost, ...] = ()
    without: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Side:
    """What one side proposes: numbers int64[n] of candidates, found by the scores float32[n]."""

    numbers: Annotated[Int64, Shape("N")]
    scores: Annotated[Float32, Shape("N")]


@dataclass(frozen=True, slots=True)
class Proposals:
    """K candidates of a shard, numbered in order of segment and row. ids: theirs; sides: dense, lexical,
    BM25; dense: float64[K], exact scores, where they alone say what is left. Where all documents of a shard
    are candidates there are no ids and no sides.
    """

    count: int
    ids: PackedBytes
    sides: tuple[Side, ...]
    dense: Float64 | None

    def __len__(self) -> int:
        return self.count

    @property
    def is_everything(self) -> bool:
        """Whether all documents of the shard are candidates."""
        return not self.sides


@dataclass(frozen=True, slots=True)
class ShardHits:
    """N candidates of a shard that may be hits. numbers: int64[N]; ids; components: float64[N, S], exact
    scores, 0 for a late interaction that has no weight; collections: of each, where there are several;
    groups: their values, where they are grouped; windows: int64[N, 3], place, start and end of each one's
    best, where there are any; contents: as they are stored, of the first ones.
    """

    numbers: Annotated[Int64, Shape("N")]
    ids: Annotated[PackedBytes, Shape("N")]
    components: Annotated[Float64, Shape("N", "S")]
    collections: Sequence[str] | None = None
    groups: GroupValues | None = None
    windows: Annotated[Int64, Shape("N", 3)] | None = None
    contents: PackedBytes | None = None

    @staticmethod
    def nothing(sides: int) -> ShardHits:
        """None, with scores of so many sides."""
        return ShardHits(NONE, PackedBytes.of([]), np.empty((0, sides)))

    def __len__(self) -> int:
        return len(self.numbers)


@dataclass(frozen=True, slots=True)
class HitParts:
    """What was not told of N candidates before. late: float64[N], their late interaction; windows, contents:
    as those of `ShardHits`.
    """

    late: Annotated[Float64, Shape("N")]
    windows: Annotated[Int64, Shape("N", 3)] | None
    contents: PackedBytes | None


class ShardSearch:
    """A search under way in one shard. Use from one thread at a time."""

    def __init__(
        self,
        segments: Sequence[Segment],
        query: CheckedQuery,
        request: ShardQuery,
        condition: Condition | None,
        fields: Mapping[str, FieldType],
        sides: int,
        without: Int64,
        *,
        everything: bool,
        collections: Sequence[str] | None = None,
    ) -> None:
        """sides: of a score, without boosts; without: numbers of documents that are none, ascending;
        everything: all documents are candidates. collections: of the segments, where they are of several.
        """
        self._segments = segments
        self._query = query
        self._request = request
        self._condition = condition
        self._fields = fields
        self._sides = SIDES + 1 if request.boosts else sides
        self._without = without
        self._everything = everything
        self._collections = collections
        self._ordinals, self._rows = NONE, NONE
        self._dense: Float64 | None = None

    @property
    def size_bytes(self) -> int:
        """About as much memory as it holds beside the snapshot."""
        return 24 * len(self._rows)

    @property
    def candidates(self) -> int:
        """How many were proposed."""
        return len(self._rows)

    def propose(self) -> Proposals:
        """The candidates of the shard: of each side its best, exact ties by id."""
        segments, request = self._segments, self._request
        if self._everything:
            allowed = [segment.allowed(self._condition) for segment in segments]
            self._ordinals, self._rows = all_rows(allowed, segments)
            return Proposals(len(self._rows), PackedBytes.of([]), (), None)
        sides = propose(segments, self._query, request.limits, request.options, self._condition)
        numbers = [numbers_of(side.ordinals, side.rows) for side in sides]
        together = united(numbers)
        self._ordinals, self._rows = rows_of(together)
        if request.nearest:
            self._dense = dense_scores(segments, self._query.dense, self._ordinals, self._rows).best()
        return Proposals(
            len(together),
            self._ids(self._ordinals, self._rows),
            tuple(
                Side(np.searchsorted(together, own), side.scores)
                for own, side in zip(numbers, sides, strict=True)
            ),
            self._dense,
        )

    def best(self, numbers: Int64 | None, wanted: int, least: float | None, content_bytes: int) -> ShardHits:
        """The `wanted` best by weighted sum of what is left, none below the least score.

        numbers: int64[n], of proposed candidates, ascending, None for all; content_bytes: how much of their
        contents at most, 0 for none.
        """
        candidates = self._scored(numbers)
        choice = Choice.among(self._segments, candidates, wanted, Page(min_score=least), None)
        weights, quick = self._request.weights, QuickScores(self._segments, candidates, self._query)
        bounds = bounds_of(quick, candidates, weights, self._sides, choice, estimates=False)
        ranked = rank(self._segments, candidates, self._query, weights, self._sides, choice, bounds)
        hits = self._hits(ranked.candidates, ranked.components)
        return replace(
            hits,
            windows=self._windows(ranked.candidates, ranked.late),
            contents=self._contents(ranked.candidates, content_bytes) if content_bytes else None,
        )

    def all(self, numbers: Int64 | None, group_by: str | None) -> ShardHits:
        """All that are left, with exact scores and their values in a keyword field. numbers: as above.

        Raises InvalidQueryError for another field.
        """
        check_group_by(group_by, self._fields)
        candidates = self._scored(numbers)
        late = np.zeros(len(candidates))
        if self._request.weights.colbert != 0:
            late = late_scores(self._segments, self._query, candidates.segments, candidates.rows).best()
        hits = self._hits(candidates, candidates.components(late, self._sides))
        if group_by is None:
            return hits
        return replace(hits, groups=group_values(self._segments, candidates, group_by))

    def parts(self, numbers: Int64, content_bytes: int) -> HitParts:
        """What `all` does not tell of some candidates; numbers, content_bytes: as above."""
        ordinals, rows = self._ordinals[numbers], self._rows[numbers]
        zeros = np.zeros(len(rows))
        candidates = Candidates(ordinals, rows, zeros, zeros, zeros)
        late = late_scores(self._segments, self._query, ordinals, rows)
        return HitParts(
            late.best() if len(rows) else zeros,
            self._windows(candidates, late),
            self._contents(candidates, content_bytes) if content_bytes else None,
        )

    def _scored(self, numbers: Int64 | None) -> Candidates:
        """What is left of the candidates, with all scores but late interaction."""
        numbers = np.arange(len(self._rows)) if numbers is None else numbers
        if len(self._without):
            own = numbers_of(self._ordinals[numbers], self._rows[numbers])
            numbers = numbers[~np.isin(own, self._without)]
        ordinals, rows = self._ordinals[numbers], self._rows[numbers]
        dense = None if self._dense is None else self._dense[numbers]
        candidates = scored(self._segments, self._query, ordinals, rows, dense)
        boosts = self._request.boosts
        if not boosts:
            return candidates
        added = boosts_at(self._segments, ordinals, rows, boosts, self._fields)
        return replace(candidates, boost=np.round(added.sum(axis=0), DECIMALS))

    def _hits(self, candidates: Candidates, components: Float64) -> ShardHits:
        numbers = np.searchsorted(
            numbers_of(self._ordinals, self._rows), numbers_of(candidates.segments, candidates.rows)
        )
        ids = self._ids(candidates.segments, candidates.rows)
        collections = None
        if self._collections is not None:
            collections = [self._collections[ordinal] for ordinal in candidates.segments.tolist()]
        return ShardHits(numbers, ids, components, collections)

    def _ids(self, ordinals: Int64, rows: Int64) -> PackedBytes:
        every = np.arange(len(rows))
        return ids_at(self._segments, ordinals, rows, every) if len(rows) else PackedBytes.of([])

    def _windows(self, candidates: Candidates, late: WindowScores) -> Int64 | None:
        windows = best_windows(self._segments, candidates, self._query, self._request.weights, late)
        best: list[Window] = [window for window in windows if window is not None]
        if not best:
            return None
        return np.array([(window.index, window.start, window.end) for window in best], np.int64)

    def _contents(self, candidates: Candidates, most_bytes: int) -> PackedBytes:
        """As they are stored, of the first documents: one at least, and so many bytes together at most."""
        contents, size = list[bytes](), 0
        for ordinal, row in zip(candidates.segments.tolist(), candidates.rows.tolist(), strict=True):
            content = self._segments[ordinal].documents.contents[row]
            size += len(content)
            if contents and size > most_bytes:
                break
            contents.append(content)
        return PackedBytes.of(contents)
