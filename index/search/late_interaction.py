"""Late interaction of a query with candidates of all segments, on cores that no other search uses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from index.files.pieces import read_ahead
from index.runs import runs
from index.scoring import ROUNDING, near_packed_maxsim, packed_maxsim
from index.search.query import CheckedQuery
from index.search.retrieval import Candidates
from index.search.threads import segment_threads
from index.segments.segment import Segment
from index.token_vectors.centroid_maxsim import CentroidProducts
from index.token_vectors.integer_query import LANES
from index.token_vectors.query import QueryTokens
from index.token_vectors.texts import StoredTexts
from models.representations import Float64, Int64, offsets_of, ragged_positions

TEXTS_AT_ONCE = 32
CENTROIDS_AT_ONCE = 128  # texts whose centroids are looked at
# Products of values with groups of query tokens in the time that one document takes in a dense search.
VALUES_PER_DOCUMENT = 128
CENTROIDS_PER_DOCUMENT = 20  # that are looked up in that time
LEAST_LEFT = 0.05  # of the highest score
OFF = 1e-6  # what the length of a vector in float32 may be off

Scored = TypeVar("Scored")


@dataclass(frozen=True, slots=True)
class LateScores:
    """The `s_mul` float64[W] of the windows of K documents, or of these where they have none.

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


@dataclass(frozen=True, slots=True)
class FirstScores:
    """What centroids alone say of K candidates. scores: float64[K], the `s_mul` of their tokens' centroids;
    highest: what none is above, the mean length of the query's vectors; query_tokens: how many these are.
    """

    scores: Float64
    highest: float
    query_tokens: int

    @property
    def left(self) -> Float64:
        """What each may have more at most, float64[K], and never less than rounding may be off."""
        return np.maximum(self.highest - self.scores, LEAST_LEFT * self.highest)

    def shares(self, late: Float64, places: Int64) -> Float64:
        """What some candidates have more, of what they may have more: float64[n]. late: float64[K]."""
        shares: Float64 = (late[places] - self.scores[places]) / self.left[places]
        return shares


def first_scores(segments: Sequence[Segment], found: Candidates, query: CheckedQuery) -> FirstScores | None:
    """A first look at candidates; None without several centroids, or where all scores are 0."""
    tokens = query.colbert
    if tokens is None or len(tokens) == 0 or tokens.codebook is None or tokens.integers is None:
        return None
    lengths = np.sqrt(np.square(tokens.integers.vectors).sum(axis=1))
    if not tokens.codebook.several or not lengths.any():
        return None
    highest = float(lengths.mean()) * (1 + OFF) + ROUNDING  # stored vectors have length 1
    read_ahead(found.segments, found.rows, lambda place, some: segments[place].centroid_pieces(some))
    products = CentroidProducts.of(tokens.integers, tokens.codebook)
    texts, offsets = _texts_of(segments, found)
    scores = _in_parts(products.scores, texts, CENTROIDS_AT_ONCE, 1 / CENTROIDS_PER_DOCUMENT)
    best = LateScores(np.concatenate([np.empty(0), *scores]), offsets).best()
    return FirstScores(best, highest, len(tokens))


def near_scores(
    segments: Sequence[Segment], found: Candidates, query: CheckedQuery
) -> tuple[Float64, Float64]:
    """The `s_mul` of each candidate, quickly, and how far it may be from the exact one: float64[K] both."""
    tokens = query.colbert
    if tokens is None or len(found) == 0:
        return np.zeros(len(found)), np.zeros(len(found))
    _read_tokens_ahead(segments, found, query)
    texts, offsets = _texts_of(segments, found)
    done = _in_parts(
        lambda some: near_packed_maxsim(tokens, some), texts, TEXTS_AT_ONCE, _documents_per_token(tokens)
    )
    scores, errors = (
        LateScores(np.concatenate([np.empty(0), *parts]), offsets).best()
        for parts in ([scores for scores, _ in done], [errors for _, errors in done])
    )
    return scores, errors


def late_scores(segments: Sequence[Segment], found: Candidates, query: CheckedQuery) -> LateScores:
    """The exact `s_mul` of each candidate's windows; 0 where the query has no token vectors."""
    _read_tokens_ahead(segments, found, query)
    tokens = query.colbert
    if tokens is None or len(found) == 0:
        offsets = _windows_of(segments, found)[2]
        return LateScores(np.zeros(int(offsets[-1])), offsets)
    texts, offsets = _texts_of(segments, found)
    done = _in_parts(
        lambda some: packed_maxsim(tokens, some), texts, TEXTS_AT_ONCE, _documents_per_token(tokens)
    )
    return LateScores(np.concatenate([np.empty(0), *done]), offsets)


def _read_tokens_ahead(segments: Sequence[Segment], found: Candidates, query: CheckedQuery) -> None:
    if query.colbert is not None:
        read_ahead(found.segments, found.rows, lambda place, some: segments[place].token_pieces(some))


def _texts_of(segments: Sequence[Segment], found: Candidates) -> tuple[StoredTexts, Int64]:
    """What was encoded of candidates, and where the texts of each begin: int64[K+1].

    All segments of a collection have token vectors, or none has, and then no query has any either.
    """
    places, rows, offsets = _windows_of(segments, found)
    stores = [segment.token_vectors for segment in segments if segment.token_vectors is not None]
    return StoredTexts.across(stores, places, rows), offsets


def _windows_of(segments: Sequence[Segment], found: Candidates) -> tuple[Int64, Int64, Int64]:
    """The segments int64[W] and windows int64[W] of candidates, which are they themselves where there are no
    windows; and where those of each begin, int64[K+1].
    """
    if len(found) == 0 or segments[0].windows is None:
        return found.segments, found.rows, np.arange(len(found) + 1)
    counts, rows = np.empty(len(found), np.int64), []
    for place, run in runs(found.segments):
        texts, counts[run] = segments[place].texts_of(found.rows[run])
        rows.append(texts)
    return np.repeat(found.segments, counts), np.concatenate(rows), offsets_of(counts)


def _in_parts(
    score: Callable[[StoredTexts], Scored], texts: StoredTexts, at_once: int, documents_per_token: float
) -> list[Scored]:
    """What a function gives for so many texts at once, each part's on a free core.

    documents_per_token: that a dense search compares in the time that one token takes.
    """
    firsts = np.arange(0, len(texts), at_once)
    costs = np.add.reduceat(texts.tokens, firsts) * documents_per_token if len(firsts) else np.empty(0)

    def part(number: int) -> Scored:
        return score(texts.part(slice(number * at_once, (number + 1) * at_once)))

    return segment_threads().map(part, costs.astype(np.int64).tolist())


def _documents_per_token(query: QueryTokens) -> float:
    """As `_in_parts` takes it, of a comparison with the query's tokens."""
    values: int = -(-len(query) // LANES) * query.vectors.shape[1]
    return values / VALUES_PER_DOCUMENT
