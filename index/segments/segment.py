"""One immutable segment, opened read-only through memory maps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from index.bm25.segment import Bm25Segment, SegmentTerms
from index.candidates import DenseOptions
from index.catalog.manifest import SegmentEntry
from index.catalog.settings import CollectionSettings
from index.dense.index import DenseIndex, Device
from index.documents.fields import Column, open_columns
from index.documents.store import DocumentStore
from index.errors import DamagedIndexError
from index.files.array_folder import ArrayFolder
from index.files.storage import missing, sha256_of
from index.scoring import dense_scores, lexical_scores, packed_maxsim
from index.segments.builder import DENSE
from index.sparse.forward_rows import open_forward_rows
from index.sparse.inverted_index import InvertedIndex
from index.sparse.term_statistics import TermStatistics
from index.token_vectors.store import TokenVectorStore
from index.windows.scores import Scorer, best_of_windows, scores_of_windows, search_documents
from index.windows.store import WindowStore
from models.representations import (
    Bool,
    Float32,
    Float64,
    Int32,
    Int64,
    SparseRows,
    offsets_of,
    ragged_positions,
)


@dataclass(frozen=True, slots=True)
class Segment:
    """The parts of a segment of N documents.

    vectors: float16[N, D], or [W, D] of all windows; token_vectors: of documents, or of windows, None for the
    codec none; statistics is None in a collection without idf, bm25 in one without that, windows in one
    without them.
    """

    vectors: npt.NDArray[np.float16]
    dense_index: DenseIndex
    forward: SparseRows
    inverted: InvertedIndex
    token_vectors: TokenVectorStore | None
    documents: DocumentStore
    columns: Mapping[str, Column]
    statistics: TermStatistics | None
    bm25: Bm25Segment | None
    windows: WindowStore | None

    @staticmethod
    def open(
        folder: Path, entry: SegmentEntry, settings: CollectionSettings, device: Device = "cpu"
    ) -> Segment:
        """Maps all parts; `device` is where dense search runs.

        Raises DamagedIndexError, naming the file, for a missing or truncated one.

        Checksums are left to `verify`, except for the graph that FAISS parses: its reader trusts it.
        """
        check_sizes(folder, entry)
        for name, file in entry.files.items():
            if name.endswith(".faiss") and sha256_of(folder / name) != file.sha256:
                raise DamagedIndexError(f"{folder / name} was altered; restore it or rebuild the collection")
        arrays, texts, windows = ArrayFolder(folder), entry.documents, None
        if settings.window is not None:
            texts = entry.windows or 0
            windows = WindowStore.open(arrays, entry.documents, texts)
        vectors = arrays.open(DENSE, np.float16, (settings.dense_dimension,), texts)
        forward = open_forward_rows(arrays, entry.documents)
        token_vectors = None
        if settings.stores_token_vectors:
            token_vectors = TokenVectorStore.open(
                arrays, settings.token_codec, texts, settings.colbert_dimension
            )
        inverted, statistics = InvertedIndex.open(arrays, forward), None
        if settings.lexical == "idf":
            statistics = TermStatistics.open(
                arrays, inverted.terms, entry.documents, settings.vocabulary_size
            )
        return Segment(
            vectors,
            DenseIndex.open(entry.dense_kind, vectors, folder, device),
            forward,
            inverted,
            token_vectors,
            DocumentStore.open(arrays, entry.documents),
            open_columns(arrays, settings.fields, entry.documents),
            statistics,
            Bm25Segment.open(arrays, entry.documents) if settings.bm25 else None,
            windows,
        )

    def __len__(self) -> int:
        return len(self.forward)

    @property
    def encodings(self) -> int:
        """Its encoded texts: windows, or documents in a collection without them."""
        return len(self.vectors)

    def search_dense(
        self, query: Float32, k: int, allowed: Bool | None, options: DenseOptions
    ) -> tuple[Int64, Float32]:
        """The k documents of highest `s_dense`, as `DenseIndex.search`."""
        if self.windows is None:
            return self.dense_index.search(query, k, allowed, options)
        return search_documents(self.dense_index, self.windows, query, k, allowed, options)

    def dense_scores(self, query: Float32 | None, rows: Int64) -> Float64:
        """`s_dense` of the rows; 0 for a query without a dense vector."""
        if query is None:
            return np.zeros(len(rows))
        return self._best(rows, lambda texts: dense_scores(query, self.vectors, texts))

    def lexical_scores(self, token_ids: Int32, weights: Float32, rows: Int64) -> Float64:
        """`s_lex` of the rows."""
        return lexical_scores(token_ids, weights, self.forward, rows)

    def bm25_scores(self, terms: SegmentTerms | None, rows: Int64) -> Float64:
        """`s_bm25` of the rows; 0 where the query has no text or the collection no BM25."""
        if terms is None or self.bm25 is None:
            return np.zeros(len(rows))
        return self.bm25.scores(terms, rows)

    def colbert_scores(self, query: Float32 | None, rows: Int64, *, precise: bool) -> Float64:
        """`s_mul` of the rows; 0 where query or segment has no token vectors."""
        store = self.token_vectors
        if query is None or store is None:
            return np.zeros(len(rows))
        return self._best(rows, lambda texts: packed_maxsim(query, store, texts, precise=precise))

    def colbert_of_texts(self, query: Float32 | None, rows: Int64) -> list[Float64]:
        """The exact `s_mul` of each row's windows, of which the best is that of the row."""
        store = self.token_vectors
        texts, counts = rows, np.ones(len(rows), np.int64)
        if self.windows is not None:
            texts = ragged_positions(self.windows.offsets, rows)
            counts = self.windows.offsets[rows + 1] - self.windows.offsets[rows]
        scores = np.zeros(len(texts))
        if query is not None and store is not None:
            scores = scores_of_windows(texts, lambda some: packed_maxsim(query, store, some, precise=True))
        return np.split(scores, offsets_of(counts)[1:-1])

    def encodings_of(self, row: int) -> int:
        """The encoded texts of a row: its windows, or the document itself."""
        return 1 if self.windows is None else len(self.windows.of(row))

    def _best(self, rows: Int64, score: Scorer) -> Float64:
        return score(rows) if self.windows is None else best_of_windows(self.windows, rows, score)


def check_sizes(folder: Path, entry: SegmentEntry) -> None:
    """Raises DamagedIndexError, naming the file, where one is missing or of another size."""
    for name, file in entry.files.items():
        path = folder / name
        try:
            size = path.stat().st_size
        except FileNotFoundError as error:
            raise missing(path) from error
        if size != file.size_bytes:
            raise DamagedIndexError(
                f"{path} has {size} bytes, but was published with {file.size_bytes}; restore it or rebuild"
            )
