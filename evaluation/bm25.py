"""BM25 over the encoder's own word pieces: the baseline next to the learned lexical weights."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import overload

import bm25s
import numpy as np
from bm25s.tokenization import Tokenized

from tercet.index.bm25.formula import K1, B
from tercet.models.representations import Float32, Int32, TokenBatch


class Bm25:
    """Scores documents given as token ids (Robertson and Zaragoza 2009, with Lucene's idf)."""

    def __init__(self, documents: Iterable[TokenBatch], special_ids: AbstractSet[int]) -> None:
        """documents: all texts of the corpus, in batches; special ids carry no words and are dropped."""
        self._special = np.array(sorted(special_ids), np.int32)
        words = [
            self._words(ids) for batch in documents for ids in np.split(batch.token_ids, batch.offsets[1:-1])
        ]
        self._documents = len(words)
        self._vocabulary: Int32 = np.unique(np.concatenate([np.zeros(0, np.int32), *words]))
        self._index: bm25s.BM25 | None = None
        if len(self._vocabulary):
            columns = {str(token): column for column, token in enumerate(self._vocabulary.tolist())}
            self._index = bm25s.BM25(k1=K1, b=B, method="lucene")
            rows = _Columns(words, self._vocabulary)
            self._index.index(Tokenized(rows, columns), create_empty_token=False, show_progress=False)

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


class _Columns(Sequence[list[int]]):
    """The vocabulary's columns of each document's words, made when they are read.

    As Python's numbers, which bm25s counts, those of all documents would take nine times as much as the ids.
    """

    def __init__(self, words: Sequence[Int32], vocabulary: Int32) -> None:
        self._words = words
        self._vocabulary = vocabulary

    def __len__(self) -> int:
        return len(self._words)

    @overload
    def __getitem__(self, row: int) -> list[int]: ...
    @overload
    def __getitem__(self, row: slice) -> _Columns: ...
    def __getitem__(self, row: int | slice) -> list[int] | _Columns:
        if isinstance(row, slice):
            return _Columns(self._words[row], self._vocabulary)
        columns: list[int] = np.searchsorted(self._vocabulary, self._words[row]).tolist()
        return columns
