"""Late interaction of a query with candidates of all segments, on cores that no other search uses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from index.files.pieces import read_ahead
from index.runs import runs
from index.search.query import CheckedQuery
from index.search.retrieval import Candidates
from index.search.threads import segment_threads
from index.segments.segment import Segment
from index.token_vectors.centroid_maxsim import CentroidProducts
from index.token_vectors.integer_products import LANES
from index.token_vectors.query import QueryTokens
from models.representations import Float64, Int64, offsets_of, ragged_positions

CANDIDATES_AT_ONCE = 32
CENTROIDS_AT_ONCE = 128  # candidates whose centroids are looked at
# Products of values with groups of query tokens in the time that one document takes in a dense search.
VALUES_PER_DOCUMENT = 128
CENTROIDS_PER_DOCUMENT = 20  # that are looked up in that time

Part = tuple[int, slice]
"""The place of a segment, and where some of its candidates are."""


@dataclass(frozen=True, slots=True)
class LateScores:
    """The exact `s_mul` float64[W] of the windows of K documents, or of these where they have none.

    offsets: int64[K+1], where those of each document lie.
    """

    scores: Float64
    offsets: Int64

    def best(self) -> Float64:
        """Of each document that of its best window, float64[K]."""
        if len(self.scores) == 0:
            return np.empty(0)
        best: Float64 = np.maximum.reduceat(self.scores, self.offsets[:-1])
        return best

    def of(self, place: int) -> Float64:
        """Those of one document's windows."""
        return self.scores[self.offsets[place] : self.offsets[place + 1]]

    def take(self, places: Int64) -> LateScores:
        """Those of the documents at these places."""
        counts = self.offsets[places + 1] - self.offsets[places]
        return LateScores(self.scores[ragged_positions(self.offsets, places)], offsets_of(counts))


def first_scores(segments: Sequence[Segment], found: Candidates, query: CheckedQuery) -> Float64 | None:
    """The `s_mul` of each candidate with its tokens' centroids alone, float64[K]; None without several."""
    tokens = query.colbert
    if tokens is None or len(tokens) == 0 or tokens.codebook is None or tokens.integers is None:
        return None
    if not tokens.codebook.several:
        return None
    read_ahead(found.segments, found.rows, lambda place, some: segments[place].centroid_pieces(some))
    products = CentroidProducts.of(tokens.integers, tokens.codebook)
    scores = np.zeros(len(found))
    parts = _parts(found, CENTROIDS_AT_ONCE)

    def score(number: int) -> None:
        place, part = parts[number]
        scores[part] = segments[place].centroid_scores(products, found.rows[part])

    stored = _tokens(segments, found, parts)
    segment_threads().map(score, [count // CENTROIDS_PER_DOCUMENT for count in stored])
    return scores


def near_scores(
    segments: Sequence[Segment], found: Candidates, query: CheckedQuery
) -> tuple[Float64, Float64]:
    """The `s_mul` of each candidate, quickly, and how far it may be from the exact one: float64[K] both."""
    scores, errors = np.zeros(len(found)), np.zeros(len(found))
    if query.colbert is None:
        return scores, errors
    tokens = query.colbert
    _read_tokens_ahead(segments, found, query)
    parts = _parts(found, CANDIDATES_AT_ONCE)

    def score(number: int) -> None:
        place, part = parts[number]
        scores[part], errors[part] = segments[place].near_colbert_scores(tokens, found.rows[part])

    segment_threads().map(score, _costs(segments, found, parts, tokens))
    return scores, errors


def colbert_scores(segments: Sequence[Segment], found: Candidates, query: CheckedQuery) -> Float64:
    """The exact `s_mul` of each candidate, float64[K]."""
    scores = np.zeros(len(found))
    for place, run in runs(found.segments):
        scores[run] = segments[place].colbert_scores(query.colbert, found.rows[run])
    return scores


def late_scores(segments: Sequence[Segment], found: Candidates, query: CheckedQuery) -> LateScores:
    """The exact `s_mul` of each candidate's windows."""
    _read_tokens_ahead(segments, found, query)
    parts = _parts(found, CANDIDATES_AT_ONCE)

    def score(number: int) -> tuple[Float64, Int64]:
        place, part = parts[number]
        return segments[place].colbert_of_texts(query.colbert, found.rows[part])

    costs = [0] * len(parts) if query.colbert is None else _costs(segments, found, parts, query.colbert)
    done = segment_threads().map(score, costs)
    scores = np.concatenate([np.empty(0), *(scores for scores, _ in done)])
    counts = np.concatenate([np.empty(0, np.int64), *(counts for _, counts in done)])
    return LateScores(scores, offsets_of(counts))


def _read_tokens_ahead(segments: Sequence[Segment], found: Candidates, query: CheckedQuery) -> None:
    if query.colbert is not None:
        read_ahead(found.segments, found.rows, lambda place, some: segments[place].token_pieces(some))


def _parts(found: Candidates, at_once: int) -> list[Part]:
    """Some candidates of one segment each."""
    return [
        (place, slice(first, min(first + at_once, run.stop)))
        for place, run in runs(found.segments)
        for first in range(run.start, run.stop, at_once)
    ]


def _tokens(segments: Sequence[Segment], found: Candidates, parts: Sequence[Part]) -> list[int]:
    """The token vectors of each part."""
    return [int(segments[place].tokens_of(found.rows[part]).sum()) for place, part in parts]


def _costs(
    segments: Sequence[Segment], found: Candidates, parts: Sequence[Part], tokens: QueryTokens
) -> list[int]:
    """What comparing each part with a query takes, as documents of a dense search."""
    values = -(-len(tokens) // LANES) * tokens.vectors.shape[1]
    return [stored * values // VALUES_PER_DOCUMENT for stored in _tokens(segments, found, parts)]
