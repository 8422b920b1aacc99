"""What a segment stores of a document's representations, in the form of an encoder's."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tercet.index.candidates import Document
from tercet.index.errors import InvalidQueryError
from tercet.index.segments.rows import DocumentRows
from tercet.index.windows.store import DocumentWindows
from tercet.models.representations import Float32, Representations, SparseRows, TokenVectors


@dataclass(frozen=True, slots=True)
class StoredRepresentations:
    """Of documents with W encodings together, which is 1 each in a collection without windows.

    dense: float32[W, D]; sparse: W rows; colbert: of W texts, None for the codec none. The values are those
    that scores are computed from: rounded to what the collection stores. position: of the ledger, at which
    the first was written, 0 by a build; text where the collection is divided over several ledgers.
    """

    position: int | str
    dense: Float32
    sparse: SparseRows
    colbert: TokenVectors | None
    windows: DocumentWindows | None

    @staticmethod
    def of(rows: DocumentRows) -> StoredRepresentations:
        """Of stored documents, one at least."""
        colbert = None
        if rows.tokens is not None:
            indices = np.arange(rows.tokens.offsets[0], rows.tokens.offsets[-1])
            colbert = TokenVectors(rows.tokens.vectors(indices), rows.tokens.offsets - rows.tokens.offsets[0])
        return StoredRepresentations(
            int(rows.positions[0]), rows.dense.astype(np.float32), rows.sparse, colbert, rows.windows
        )


@dataclass(frozen=True, slots=True)
class StoredQuery:
    """A stored document as a query: its representations as those of one text, and that text, for BM25."""

    representations: Representations
    text: str

    @staticmethod
    def of(document: Document, stored: StoredRepresentations, window: int) -> StoredQuery:
        """Of a document's only text, or of one of its windows. Raises InvalidQueryError for another."""
        count = len(stored.dense)
        if not 0 <= window < count:
            raise InvalidQueryError(
                f"window {window} of document {document.id[:80]!r} is not there: it has {count}, from 0 on"
            )
        text = document.text
        if stored.windows is not None:
            start, end = stored.windows.spans[window].tolist()
            text = text[start:end]
        row = np.array([window])
        return StoredQuery(
            Representations(
                np.zeros(1, np.int64),
                np.zeros(1, np.bool_),
                stored.dense[row],
                stored.sparse.take(row),
                None if stored.colbert is None else stored.colbert.take(row),
            ),
            document.head + text,
        )
