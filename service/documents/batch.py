"""Documents on their way into a collection, with their representations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tercet.index.candidates import Document
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.windows.store import DocumentWindows
from tercet.models.representations import Int64, Output, Representations, offsets_of, ragged_positions


@dataclass(frozen=True, slots=True)
class EncodedDocuments:
    """Representations of some documents of a batch: of B documents, or of their W windows.

    positions: int64[B], of the documents in the batch; offsets: int64[B+1], the encoded texts of each;
    spans: int64[W, 2], the first character and the end of each in its document's text.
    """

    positions: Int64
    representations: Representations
    offsets: Int64
    spans: Int64

    @staticmethod
    def whole(positions: Int64, documents: Sequence[Document], encoded: Representations) -> EncodedDocuments:
        """Representations of documents that were encoded whole, each at its position in the batch."""
        ends = np.array([len(documents[position].text) for position in positions.tolist()], np.int64)
        spans = np.stack([np.zeros_like(ends), ends], axis=1)
        return EncodedDocuments(positions, encoded, np.arange(len(positions) + 1), spans)

    def windows(self, settings: CollectionSettings) -> DocumentWindows | None:
        """The windows of the documents; None in a collection without."""
        return None if settings.window is None else DocumentWindows(self.offsets, self.spans)


class ReadyDocuments(Protocol):
    """Representations that a client brought along with some documents of its batch.

    positions: int64[B], of these documents; fingerprints: of the encoders that made them.
    """

    @property
    def positions(self) -> Int64: ...

    @property
    def fingerprints(self) -> Sequence[str]: ...

    def encoded(self, documents: Sequence[Document], settings: CollectionSettings) -> EncodedDocuments:
        """What was brought, checked. Raises InvalidRequestError or InvalidDocumentError.

        documents: all of the batch.
        """
        ...


def stored_outputs(settings: CollectionSettings) -> tuple[Output, ...]:
    """What a collection stores of each text."""
    return settings.sides


def joined(parts: Sequence[EncodedDocuments]) -> EncodedDocuments:
    """All documents of some parts, in order of position. The parts hold the same outputs."""
    if len(parts) == 1 and (np.diff(parts[0].positions) > 0).all():
        return parts[0]
    positions = np.concatenate([part.positions for part in parts])
    offsets = offsets_of(np.concatenate([np.diff(part.offsets) for part in parts]))
    order = np.argsort(positions)
    texts = ragged_positions(offsets, order)
    return EncodedDocuments(
        positions[order],
        Representations.concatenate([part.representations for part in parts]).take(texts),
        offsets_of(np.diff(offsets)[order]),
        np.concatenate([part.spans for part in parts])[texts],
    )
