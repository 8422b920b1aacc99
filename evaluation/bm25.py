"""BM25 over the encoder's own word pieces: the baseline next to the learned lexical weights."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

import bm25s
import numpy as np

from tercet.index.bm25.formula import K1, B
from tercet.models.representations import Float32, Int32, TokenBatch


class Bm25:
    """Scores documents given as token ids (Robertson and Zaragoza 2009, with Lucene's idf)."""

    def __init__(self, documents: TokenBatch, special_ids: AbstractSet[int]) -> None:
        """documents: all texts of the corpus; special ids carry no words and are dropped."""
        self._special = np.array(sorted(special_ids), np.int32)
        self._vocabulary: Int32 = np.unique(self._words(documents.token_ids))
        self._documents = len(documents)
        self._index: bm25s.BM25 | None = None
        if len(self._vocabulary):
            rows = [
                np.searchsorted(self._vocabulary, self._words(ids)).tolist()
                for ids in np.split(documents.token_ids, documents.offsets[1:-1])
            ]
            columns = {str(token): column for column, token in enumerate(self._vocabulary.tolist())}
            self._index = bm25s.BM25(k1=K1, b=B, method="lucene")
            self._index.index((rows, columns), create_empty_token=False, show_progress=False)

    def scores(self, query: Int32) -> Float32:
        """Score of every document for a query's token ids, float32[N]; 0 where no word is shared."""
        words = self._words(query)
        known = words[np.isin(words, self._vocabulary)]
        if self._index is None or not len(known):
            return np.zeros(self._documents, np.float32)
        columns = np.searchsorted(self._vocabulary, known)
        return np.asarray(self._index.get_scores_from_ids(columns.tolist()), np.float32)

    def _words(self, token_ids: Int32) -> Int32:
        return token_ids[~np.isin(token_ids, self._special)]
