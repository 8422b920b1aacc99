"""Documents out of a snapshot, with their representations as scores see them, in parts of bounded size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tercet.index.candidates import Document
from tercet.index.documents.filters import Filter
from tercet.index.documents.store import decode_document
from tercet.index.segments.stored import StoredRepresentations
from tercet.index.snapshot import Snapshot
from tercet.index.windows.store import DocumentWindows, largest_weights
from tercet.models.representations import Float32, Int64, SparseRows, TokenVectors
from tercet.transfer.errors import TransferError


@dataclass(frozen=True, slots=True)
class StoredDocuments:
    """B documents with W encodings, which are as many in a collection without windows.

    dense: float32[W, D]; sparse: W rows; lexical: B rows, the largest weight of each term in any window;
    colbert: of W texts, None for the codec none; windows: None in a collection without.
    """

    documents: Sequence[Document]
    dense: Float32
    sparse: SparseRows
    lexical: SparseRows
    colbert: TokenVectors | None
    windows: DocumentWindows | None

    def __len__(self) -> int:
        return len(self.documents)

    @property
    def offsets(self) -> Int64:
        """The encodings of each document, int64[B+1]."""
        return np.arange(len(self) + 1) if self.windows is None else self.windows.offsets

    def encodings(self, row: int) -> range:
        """The rows of a document's encoded texts."""
        return range(int(self.offsets[row]), int(self.offsets[row + 1]))

    def terms(self, row: int) -> dict[str, float]:
        """A document's lexical weights by token id, both as JSON has them."""
        ids, weights = self.lexical.row(row)
        return dict(zip(map(str, ids.tolist()), weights.tolist(), strict=True))

    def token_vectors(self, row: int) -> Float32 | None:
        """The token vectors of all windows of a document, one after the other; None where none are stored."""
        if self.colbert is None:
            return None
        first, last = (int(self.colbert.offsets[self.offsets[row + step]]) for step in (0, 1))
        return self.colbert.vectors[first:last]


def stored_documents(
    snapshot: Snapshot, documents: int, tokens: int, filter: Filter | None = None
) -> Iterator[StoredDocuments]:
    """All documents of a snapshot that a filter allows, in parts of at most so many documents and token
    vectors. Raises InvalidQueryError for a filter that the collection cannot answer.
    """
    for rows in snapshot.rows(documents, tokens, filter):
        stored, everything = StoredRepresentations.of(rows), np.arange(len(rows))
        pairs = zip(rows.ids.take(everything), rows.contents.take(everything), strict=True)
        lexical = stored.sparse
        if stored.windows is not None:
            lexical = largest_weights(stored.sparse, stored.windows.offsets)
        yield StoredDocuments(
            [decode_document(identifier.decode(), content) for identifier, content in pairs],
            stored.dense,
            stored.sparse,
            lexical,
            stored.colbert,
            stored.windows,
        )


@dataclass(frozen=True, slots=True)
class DocumentLimits:
    """What one document may have in a target: bytes of its text, its title and its metadata as JSON each, and
    token vectors. None is no limit.
    """

    part_bytes: int | None = None
    token_vectors: int | None = None

    def check(self, snapshot: Snapshot, target: str, filter: Filter | None = None) -> None:
        """Raises TransferError, naming the first document beyond a limit, before anything is written.

        filter: of the documents that are exported.
        """
        for documents, rows, tokens in snapshot.sizes(filter):
            if self.token_vectors is not None and (tokens > self.token_vectors).any():
                first = int(np.argmax(tokens > self.token_vectors))
                raise TransferError(
                    f"document {documents.get(int(rows[first])).id!r:.80} has {tokens[first]} token vectors; "
                    f"{target} takes {self.token_vectors} of a document: export with --no-colbert"
                )
            if self.part_bytes is not None:
                sizes = np.diff(documents.contents.offsets)[rows]
                for row in rows[sizes > self.part_bytes].tolist():
                    self._check_parts(documents.get(row), self.part_bytes, target)

    @staticmethod
    def _check_parts(document: Document, limit: int, target: str) -> None:
        import orjson

        parts = {
            "title": (document.title or "").encode(),
            "text": document.text.encode(),
            "metadata": orjson.dumps(document.metadata),
        }
        for name, content in parts.items():
            if len(content) > limit:
                raise TransferError(
                    f"document {document.id!r:.80} has {len(content)} bytes of {name}; {target} takes "
                    f"{limit}: split it, or export to another target"
                )
