"""The best documents of a lexical query over all segments, in parts that threads may take."""

from __future__ import annotations

from collections.abc import Sequence

from index.documents.row_set import RowSet
from index.search.threads import DOCUMENTS_PER_THREAD
from index.sparse.inverted_index import InvertedIndex
from index.sparse.search import Found, LexicalQuery, LexicalSearch
from models.cores import usable_cores
from models.representations import Bool, Float32, Int64

GROUPS = 2 * usable_cores()  # of segments at most: few to begin, and to share the last of them well


class LexicalParts:
    """A search for the k best documents and all that tie with the last, in parts of some segments each."""

    def __init__(
        self,
        indexes: Sequence[InvertedIndex],
        query: LexicalQuery,
        k: int,
        allowed: Sequence[RowSet | Bool | None],
    ) -> None:
        """query: of one term at least; k: above 0; allowed: of each segment the documents that may be found,
        as rows or bool[N]; None for all.
        """
        self._search = LexicalSearch(indexes, query, k, allowed)
        self._edges, self.costs = _groups([index.documents for index in indexes])

    def part(self, number: int) -> Found:
        """What may be among the best, in some segments."""
        return self._search.find(self._edges[number], self._edges[number + 1])

    def best(self, done: Sequence[Found]) -> tuple[Int64, Int64, Float32]:
        """Segments int64[K], rows int64[K] and scores float32[K], best first."""
        return self._search.best(done)


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
