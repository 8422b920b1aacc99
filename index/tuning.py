"""The least effort of approximate dense search that finds a wanted share of the nearest neighbours.

What each effort finds is measured on a collection as it is, over all of its segments, against scans. Queries
are given, or made of the collection's own vectors: a stored one with Gaussian noise of half its length,
which is farther from its neighbours than they are from one another, as queries are.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tercet.index.candidates import DenseOptions
from tercet.index.catalog.effort import LARGEST_EFFORT
from tercet.index.dense.index import DenseIndex, least_effort, usual_effort
from tercet.index.dense.kinds import DenseKind
from tercet.index.errors import InvalidQueryError, NothingToTuneError
from tercet.index.search.dense_search import DenseSearch
from tercet.index.search.threads import segment_threads
from tercet.index.segments.segment import Segment
from tercet.index.snapshot import Snapshot
from tercet.models.representations import Float32

NOISE = 0.5  # of a vector's length
STEP = 2**0.5  # from one effort to the next
LEAST_PROBES = 4


@dataclass(frozen=True, slots=True)
class MeasuredEffort:
    """What an effort gives: mean and least recall over queries, and the median time of a search."""

    ef_search: int
    nprobe: int
    recall: float
    lowest: float
    milliseconds: float

    @property
    def options(self) -> DenseOptions:
        """What a search takes."""
        return DenseOptions(self.ef_search, self.nprobe)


class EffortTuning:
    """Measures efforts on a snapshot, from small to large."""

    def __init__(self, snapshot: Snapshot, k: int) -> None:
        """Raises NothingToTuneError where dense search is exact, InvalidQueryError where k is too large."""
        self._k = k
        self._segments = list(snapshot.published_segments().values())
        counts: dict[DenseKind, int] = {}
        for segment in self._segments:
            if segment.entry is not None and not segment.dense_index.scans:
                kind = segment.entry.dense_kind
                counts[kind] = counts.get(kind, 0) + segment.encodings
        if not counts:
            raise NothingToTuneError(
                f"the dense side of {snapshot.settings.name!r} is scanned, so any effort finds everything"
            )
        if k > snapshot.documents:
            raise InvalidQueryError(
                f"k is {k}, but {snapshot.settings.name!r} has {snapshot.documents} documents; ask for fewer"
            )
        self.kind = max(counts, key=lambda kind: counts[kind])
        self._option = "ef_search" if self.kind == "hnsw" else "nprobe"

    def sampled_queries(self, count: int, seed: int) -> Float32:
        """Stored vectors with noise, those of deleted documents too: float32[Q, D] of unit length."""
        generator = np.random.default_rng(seed)
        sizes = np.array([segment.encodings for segment in self._segments])
        numbers = np.sort(generator.choice(sizes.sum(), min(count, int(sizes.sum())), replace=False))
        firsts = np.cumsum(sizes) - sizes
        owners = np.searchsorted(firsts, numbers, "right") - 1
        vectors = np.stack(
            [
                self._segments[owner].vectors[number - firsts[owner]]
                for owner, number in zip(owners, numbers, strict=True)
            ]
        ).astype(np.float32)
        noise = generator.standard_normal(vectors.shape, np.float32) * (NOISE / vectors.shape[1] ** 0.5)
        queries: Float32 = (vectors + noise) / np.linalg.norm(vectors + noise, axis=1, keepdims=True)
        return queries

    def measured(
        self, queries: Float32, wanted: float, searched: Callable[[int, int], None] = lambda done, total: None
    ) -> Iterator[MeasuredEffort]:
        """One effort after the other, until one finds the wanted share or the largest is reached.

        queries: float32[Q, D]. searched: told how many queries of how many were searched with an effort.
        """
        exact = [
            replace(segment, dense_index=DenseIndex.scanning(segment.vectors)) for segment in self._segments
        ]
        lowest = [float(self._best(exact, query, DenseOptions())[-1]) for query in queries]
        # What a graph does with less is the same.
        effort = float(least_effort(self._k) if self.kind == "hnsw" else LEAST_PROBES)
        while True:
            measurement = self._measure(queries, lowest, min(LARGEST_EFFORT, round(effort)), searched)
            yield measurement
            if measurement.recall >= wanted or effort >= LARGEST_EFFORT:
                return
            effort *= STEP

    def _measure(
        self, queries: Float32, lowest: Sequence[float], effort: int, searched: Callable[[int, int], None]
    ) -> MeasuredEffort:
        usual = {"ef_search": min(LARGEST_EFFORT, usual_effort(self._k)), "nprobe": DenseOptions().nprobe}
        options = usual | {self._option: effort}
        recalls, seconds = [], []
        for number, query in enumerate(queries):
            started = time.perf_counter()
            scores = self._best(self._segments, query, DenseOptions(**options))
            seconds.append(time.perf_counter() - started)
            recalls.append(np.count_nonzero(scores >= lowest[number]) / self._k)
            searched(number + 1, len(queries))
        milliseconds = 1000 * float(np.median(seconds))
        return MeasuredEffort(
            **options, recall=float(np.mean(recalls)), lowest=min(recalls), milliseconds=milliseconds
        )

    def _best(self, segments: Sequence[Segment], query: Float32, options: DenseOptions) -> Float32:
        """The scores of the k best documents, best first."""
        search = DenseSearch(segments, query, self._k, [None] * len(segments), options)
        _, _, scores = search.best(segment_threads().run(search.parts, search.costs))
        return np.sort(scores)[::-1][: self._k]
