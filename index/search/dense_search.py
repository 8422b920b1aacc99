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
from index.documents.row_set import RowSet
from index.search.dense_scan import DenseScan, Found, Scanned, products_of
from index.search.list_search import Listed, search_lists
from index.search.threads import segment_threads
from index.segments.segment import Segment
from models.representations import Float32

NOTHING: Found = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32)


def search_dense(
    segments: Sequence[Segment],
    query: Float32,
    k: int,
    allowed: Sequence[RowSet | None],
    options: DenseOptions,
) -> Found:
    """The k best documents, and maybe more.

    allowed: of each segment the documents that may be returned, or None for all that are not deleted.
    options: the effort of a search for k in one segment; a share takes a share of it.
    """
    passing = [
        segment.documents_kept if rows is None else len(rows)
        for segment, rows in zip(segments, allowed, strict=True)
    ]
    total = max(1, sum(passing))

    def effort(count: int) -> DenseOptions:
        return replace(options, ef_search=math.ceil(options.ef_search * count / k))

    def ask(place: int, count: int) -> Found:
        rows, scores = segments[place].search_dense(query, count, allowed[place], effort(count))
        if segments[place].windows is None:
            scores = products_of(segments[place].vectors[rows], query)
        return np.full(len(rows), place), rows, scores

    asked = [min(k, likely_at_most(k * count / total)) for count in passing]
    scanned: list[Scanned] = []
    listed: list[Listed] = []
    others: list[int] = []
    for place, segment in enumerate(segments):
        rows, index = allowed[place], segment.dense_index
        if segment.windows is not None:
            others.append(place)
        elif index.scans_for(asked[place], rows, effort(asked[place])):
            scanned.append(Scanned(place, segment.vectors, segment.kept if rows is None else rows))
        elif passing[place] and index.has_lists:
            listed.append(Listed(place, segment, rows))
        elif passing[place]:
            others.append(place)
    scan = DenseScan(scanned, query, k)

    def work(number: int) -> Found:
        if number < len(others):
            return ask(others[number], asked[others[number]])
        return scan.find(number - len(others))

    done = segment_threads().map(work, [*(passing[place] for place in others), *scan.costs])
    found = dict(zip(others, done, strict=False))
    rest = done[len(others) :]
    if listed:
        rest.append(search_lists(listed, query, k, total, options, segment_threads().map))
    while True:
        lowest = _lowest([*found.values(), *rest], k)
        short = [
            place
            for place, (_, _, scores) in found.items()
            if asked[place] < min(k, passing[place]) and (len(scores) == 0 or scores.min() > lowest)
        ]
        if not short:
            return _joined([*found.values(), *rest])
        for place in short:
            asked[place] = k if segments[place].dense_index.scans else min(k, 2 * asked[place])
            found[place] = ask(place, asked[place])


def _lowest(found: Sequence[Found], k: int) -> float:
    """The score of the k-th best; less than any where there are fewer."""
    _, _, scores = _joined(found)
    return float(np.partition(scores, len(scores) - k)[len(scores) - k]) if len(scores) >= k else -math.inf


def _joined(found: Sequence[Found]) -> Found:
    segments, rows, scores = (np.concatenate(parts) for parts in zip(NOTHING, *found, strict=True))
    return segments, rows, scores
