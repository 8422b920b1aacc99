"""Late interaction of a query with candidates of all segments, on cores that no other search uses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

import numpy as np

from tercet.index.files.pieces import read_ahead
from tercet.index.scoring import ROUNDING, packed_maxsim
from tercet.index.search.exact_scores import WindowScores, require_finite, texts_of
from tercet.index.search.query import CheckedQuery
from tercet.index.search.threads import segment_threads
from tercet.index.segments.segment import Segment
from tercet.index.token_vectors.centroid_maxsim import CentroidProducts
from tercet.index.token_vectors.integer_query import LANES
from tercet.index.token_vectors.query import QueryTokens
from tercet.index.token_vectors.texts import StoredTexts
from tercet.models.representations import Float64, Int64

TEXTS_AT_ONCE = 32
CENTROIDS_AT_ONCE = 128  # texts whose centroids are looked at
# Products of values with groups of query tokens in the time that one document takes in a dense search.
VALUES_PER_DOCUMENT = 128
CENTROIDS_PER_DOCUMENT = 20  # that are looked up in that time
LEAST_LEFT = 0.05  # of the highest score
OFF = 1e-6  # what the length of a vector in float32 may be off

Scored = TypeVar("Scored")


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

    def shares(self, late: Float64, indices: Int64) -> Float64:
        """What some candidates have more, of what they may have more: float64[n]. late: float64[K]."""
        shares: Float64 = (late[indices] - self.scores[indices]) / self.left[indices]
        return shares


def first_scores(
    segments: Sequence[Segment], query: CheckedQuery, ordinals: Int64, rows: Int64
) -> FirstScores | None:
    """A first look at rows int64[K] of the segments at ordinals int64[K]; None without several centroids, or
    where all scores are 0.
    """
    tokens = query.colbert
    if tokens is None or len(tokens) == 0 or tokens.codebook is None or tokens.integers is None:
        return None
    lengths = np.sqrt(np.square(tokens.integers.vectors).sum(axis=1))
    if not tokens.codebook.several or not lengths.any():
        return None
    highest = float(lengths.mean()) * (1 + OFF) + ROUNDING  # stored vectors have length 1
    read_ahead(ordinals, rows, lambda ordinal, some: segments[ordinal].centroid_pieces(some))
    products = CentroidProducts.of(tokens.integers, tokens.codebook)
    texts, offsets = _stored_texts(segments, ordinals, rows)
    parts, costs = _parts_of(texts, products.scores, CENTROIDS_AT_ONCE, 1 / CENTROIDS_PER_DOCUMENT)
    scores = segment_threads().run(parts, costs)
    best = WindowScores(np.concatenate([np.empty(0), *scores]), offsets).best()
    return FirstScores(best, highest, len(tokens))


@dataclass(frozen=True, slots=True)
class TokenParts(Generic[Scored]):
    """What compares a query with the token vectors of some texts each, for threads to take.

    costs: of each part, as documents that a dense search compares; offsets: int64[K+1], where the texts of
    each of K documents begin.
    """

    parts: list[Callable[[], Scored]]
    costs: list[int]
    offsets: Int64

    @staticmethod
    def of(
        segments: Sequence[Segment],
        tokens: QueryTokens,
        ordinals: Int64,
        rows: Int64,
        score: Callable[[QueryTokens, StoredTexts], Scored],
    ) -> TokenParts[Scored]:
        """Of rows int64[K] of the segments at ordinals int64[K], read from the disk at once."""
        read_ahead(ordinals, rows, lambda ordinal, some: segments[ordinal].token_pieces(some))
        texts, offsets = _stored_texts(segments, ordinals, rows)
        values = -(-len(tokens) // LANES) * tokens.vectors.shape[1]  # that a stored token is compared with
        parts, costs = _parts_of(texts, partial(score, tokens), TEXTS_AT_ONCE, values / VALUES_PER_DOCUMENT)
        return TokenParts(parts, costs, offsets)


def late_scores(
    segments: Sequence[Segment], query: CheckedQuery, ordinals: Int64, rows: Int64
) -> WindowScores:
    """The exact `s_mul` of each window of rows int64[K] of the segments at ordinals int64[K]; 0 where the
    query has no token vectors.
    """
    tokens = query.colbert
    if tokens is None or len(rows) == 0:
        offsets = texts_of(segments, ordinals, rows)[2]
        return WindowScores(np.zeros(int(offsets[-1])), offsets)
    parts = TokenParts.of(segments, tokens, ordinals, rows, packed_maxsim)
    scores = np.concatenate(segment_threads().run(parts.parts, parts.costs))
    scaled = any(
        segment.token_vectors is not None and segment.token_vectors.scales is not None for segment in segments
    )
    owners = np.repeat(ordinals, np.diff(parts.offsets))
    require_finite(scores, segments, owners, "token_scales" if scaled else "token_codes")
    return WindowScores(scores, parts.offsets)


def _stored_texts(segments: Sequence[Segment], ordinals: Int64, rows: Int64) -> tuple[StoredTexts, Int64]:
    """The texts of rows, with the token vectors that all segments have, and where each document begins."""
    ordinals, texts, offsets = texts_of(segments, ordinals, rows)
    stores = [segment.token_vectors for segment in segments if segment.token_vectors is not None]
    return StoredTexts.across(stores, ordinals, texts), offsets


def _parts_of(
    texts: StoredTexts, score: Callable[[StoredTexts], Scored], at_once: int, documents_per_token: float
) -> tuple[list[Callable[[], Scored]], list[int]]:
    """What scores so many texts at once, and what each such part costs.

    documents_per_token: that a dense search compares in the time that one token takes.
    """
    firsts = np.arange(0, len(texts), at_once)
    costs = np.add.reduceat(texts.tokens, firsts) * documents_per_token if len(firsts) else np.empty(0)
    parts = [partial(score, texts.part(slice(first, first + at_once))) for first in firsts.tolist()]
    return [*parts], costs.astype(np.int64).tolist()
