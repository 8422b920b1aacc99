"""The best documents of the dense side over all segments.

What a search costs grows with what is asked for, that of a graph much and a scan a little, and of many
segments each has but a few of the best. So a segment is first asked for as many as fall to it where these are
spread evenly, and some to spare; and again where all that it gave may be among the best.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from index.candidates import DenseOptions
from index.dense.expectation import likely_at_most
from index.search.threads import segment_threads
from index.segments.segment import Segment
from models.representations import Bool, Float32, Int64

Found = tuple[Int64, Float32]
"""Rows int64[K] of a segment and their scores float32[K], best first."""


def search_dense(
    segments: Sequence[Segment],
    query: Float32,
    k: int,
    allowed: Sequence[Bool | None],
    options: DenseOptions,
) -> list[Found]:
    """Of each segment its share of the k best documents, and maybe more.

    allowed: of each segment, bool[N], the documents that may be returned, or None for all. options: the
    effort of a search for k in one segment; a share takes a share of it.
    """
    passing = [_passing(segment, mask) for segment, mask in zip(segments, allowed, strict=True)]
    total = max(1, sum(passing))

    def ask(place: int, count: int) -> Found:
        ef_search = math.ceil(options.ef_search * count / k)
        effort = replace(options, ef_search=ef_search)
        return segments[place].search_dense(query, count, allowed[place], effort)

    asked = [min(k, likely_at_most(k * count / total)) for count in passing]
    found = segment_threads().map(lambda place: ask(place, asked[place]), passing)
    while True:
        lowest = _lowest(found, k)
        short = [
            place
            for place, (_, scores) in enumerate(found)
            if asked[place] < min(k, passing[place]) and (len(scores) == 0 or scores[-1] > lowest)
        ]
        if not short:
            return found
        for place in short:
            asked[place] = k if segments[place].dense_index.scans else min(k, 2 * asked[place])
            found[place] = ask(place, asked[place])


def _passing(segment: Segment, allowed: Bool | None) -> int:
    mask = segment.allowed(allowed)
    return segment.documents_kept if mask is None else int(np.count_nonzero(mask))


def _lowest(found: Sequence[Found], k: int) -> float:
    """The score of the k-th best; less than any where there are fewer."""
    scores = np.concatenate([np.empty(0, np.float32), *(scores for _, scores in found)])
    return float(np.partition(scores, len(scores) - k)[len(scores) - k]) if len(scores) >= k else -math.inf
