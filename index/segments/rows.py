"""Documents in the form in which segments hold them, on the way from one place to another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tercet.index.bm25.words import WordRows
from tercet.index.documents.fields import Column
from tercet.index.files.arrays import Array
from tercet.index.files.packed_bytes import PackedBytes
from tercet.index.token_vectors.store import TokenVectorStore
from tercet.index.windows.store import DocumentWindows
from tercet.models.representations import Int64, SparseRows, offsets_of, ragged_positions

Float16 = npt.NDArray[np.float16]


@dataclass(frozen=True, slots=True)
class DocumentRows:
    """B documents with W encodings: of their windows, or of the documents themselves.

    ids, contents: what is stored of each document; positions: int64[B], the ledger's position that each was
    written at, 0 where a build wrote it; columns: its declared fields; offsets: int64[B+1], the
    encodings of each document; dense: float16[W, D]; sparse and tokens: W rows. tokens is None for the codec
    none, windows in a collection without them. words: of the documents that are complete; None without BM25.
    """

    ids: PackedBytes
    contents: PackedBytes
    positions: Int64
    columns: Mapping[str, Column]
    offsets: Int64
    dense: Float16
    sparse: SparseRows
    tokens: TokenVectorStore | None
    words: WordRows | None
    windows: DocumentWindows | None

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def continues(self) -> bool:
        """Whether further windows of the last document are to come in another batch."""
        return self.windows is not None and self.windows.continues

    @property
    def complete(self) -> int:
        """Documents whose last window is here."""
        return len(self) - self.continues

    @property
    def total_bytes(self) -> int:
        """Bytes of what memory holds of them, but for declared fields and index structures."""
        arrays: list[Array] = [
            self.ids.data,
            self.contents.data,
            self.dense,
            self.sparse.token_ids,
            self.sparse.weights,
        ]
        if self.tokens is not None:
            arrays.append(self.tokens.codes)
            if self.tokens.centroids is not None:
                arrays.append(self.tokens.centroids)
        return sum(array.nbytes for array in arrays)

    def written_at(self, position: int) -> DocumentRows:
        """These documents as the operation at a position of the ledger wrote them."""
        return replace(self, positions=np.full(len(self), position, np.int64))

    def fitting(self, start: int, room: int) -> int:
        """The end of the documents from `start` on that have `room` encodings together, one at least."""
        end = int(np.searchsorted(self.offsets, self.offsets[start] + room, "right")) - 1
        return max(start + 1, end)

    @staticmethod
    def concatenate(parts: Sequence[DocumentRows]) -> DocumentRows:
        """The complete documents of all parts, one after the other, without columns."""
        tokens = [part.tokens for part in parts if part.tokens is not None]
        words = [part.words for part in parts if part.words is not None]
        windows = [part.windows for part in parts if part.windows is not None]
        return DocumentRows(
            PackedBytes.concatenate([part.ids for part in parts]),
            PackedBytes.concatenate([part.contents for part in parts]),
            np.concatenate([part.positions for part in parts]),
            {},
            offsets_of(np.concatenate([np.diff(part.offsets) for part in parts])),
            np.concatenate([part.dense for part in parts]),
            SparseRows.concatenate([part.sparse for part in parts]),
            TokenVectorStore.concatenate(tokens) if tokens else None,
            WordRows.concatenate(words) if words else None,
            DocumentWindows.concatenate(windows) if windows else None,
        )

    def take(self, documents: Int64) -> DocumentRows:
        """Some of the documents, ascending where one of them is not complete."""
        encodings = ragged_positions(self.offsets, documents)
        return DocumentRows(
            self.ids.gather(documents),
            self.contents.gather(documents),
            self.positions[documents],
            {name: column.take(documents) for name, column in self.columns.items()},
            offsets_of(self.offsets[documents + 1] - self.offsets[documents]),
            self.dense[encodings],
            self.sparse.take(encodings),
            None if self.tokens is None else self.tokens.take(encodings),
            None if self.words is None else self.words.take(documents[documents < self.complete]),
            None if self.windows is None else self.windows.take(documents),
        )

    def span(self, start: int, stop: int) -> DocumentRows:
        """The documents from `start` up to `stop`."""
        if start == 0 and stop == len(self):
            return self
        return self.take(np.arange(start, stop))
