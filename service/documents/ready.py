"""Ready representations of documents, out of a JSON body: lists of numbers, or base64 that was unpacked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tercet.index.candidates import Document
from tercet.index.catalog.settings import CollectionSettings
from tercet.models.representations import Float32, Int64, Representations, offsets_of
from tercet.service.documents.batch import EncodedDocuments, stored_outputs
from tercet.service.encoding.ready_representations import ready_text
from tercet.service.exceptions import InvalidRequestError


@dataclass(frozen=True, slots=True)
class ReadyText:
    """The representations of one encoded text: a document, or a window of it.

    param: where in the body they are; sparse: token ids and weights; span: the window's first character and
    end in the document's text, None where the whole of it was encoded.
    """

    param: str
    dense: Sequence[float] | Float32 | None
    sparse: tuple[Sequence[int], Sequence[float]] | None
    colbert: Sequence[Sequence[float]] | Float32 | None
    span: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class ReadyTexts:
    """Ready representations of some documents of a batch; texts: of each document, one at least."""

    positions: Int64
    fingerprints: Sequence[str]
    texts: Sequence[Sequence[ReadyText]]

    def encoded(self, documents: Sequence[Document], settings: CollectionSettings) -> EncodedDocuments:
        """What was brought, checked. Raises InvalidRequestError that names the field."""
        texts = [text for some in self.texts for text in some]
        if settings.window is None:
            for text in texts:
                if text.span is not None:
                    raise InvalidRequestError(
                        f"{text.param}: collection {settings.name!r} has no windows; give the "
                        "representations of the whole document",
                        text.param,
                    )
        whole = [len(documents[position].text) for position in self.positions.tolist()]
        spans = [
            (0, end) if text.span is None else text.span
            for end, some in zip(whole, self.texts, strict=True)
            for text in some
        ]
        needed = stored_outputs(settings)
        representations = Representations.concatenate(
            [
                ready_text(text.dense, text.sparse, text.colbert, settings, text.param, needed=needed).keep(
                    needed
                )
                for text in texts
            ]
        )
        return EncodedDocuments(
            self.positions,
            representations,
            offsets_of(np.array([len(some) for some in self.texts])),
            np.array(spans, np.int64),
        )
