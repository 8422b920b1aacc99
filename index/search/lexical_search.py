"""The best documents of a lexical query over all segments, on cores that no other search uses."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from index.documents.row_set import RowSet
from index.search.threads import DOCUMENTS_PER_THREAD, segment_threads
from index.sparse.inverted_index import InvertedIndex
from index.sparse.search import LexicalQuery, LexicalSearch
from models.cores import usable_cores
from models.representations import Bool, Float32, Int64

GROUPS = 2 * usable_cores()  # of segments at most: few to begin, and to share the last of them well


def search_lexical(
    indexes: Sequence[InvertedIndex], query: LexicalQuery, k: int, allowed: Sequence[RowSet | Bool | None]
) -> tuple[Int64, Int64, Float32]:
    """The k best documents and all that tie with the last: segments int64[K], rows int64[K], scores
    float32[K], best first.

    allowed: of each segment the documents that may be found, as rows or bool[N]; None for all.
    """
    if k <= 0 or len(query.weights) == 0 or len(indexes) == 0:
        return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32)
    search = LexicalSearch(indexes, query, k, allowed)
    edges, documents = _groups([index.documents for index in indexes])
    return search.best(
        segment_threads().map(lambda place: search.find(edges[place], edges[place + 1]), documents)
    )


def _groups(documents: Sequence[int]) -> tuple[list[int], list[int]]:
    """Segments of so many documents each, in groups that are worth a thread.

    Returns where each group begins, with the end of the last, and how many documents each has.
    """
    enough = max(DOCUMENTS_PER_THREAD, sum(documents) // GROUPS)
    edges, sizes = [0], [0]
    for place, count in enumerate(documents):
        if sizes[-1] >= enough:
            edges.append(place)
            sizes.append(0)
        sizes[-1] += count
    return [*edges, len(documents)], sizes
