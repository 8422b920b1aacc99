"""Ready representations of documents, out of a JSON body: lists of numbers, or base64 that was unpacked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from index.candidates import Document
from index.catalog.settings import CollectionSettings
from ingest.unit_vectors import wrong_lengths
from models.representations import (
    Float32,
    Int64,
    Representations,
    SparseRows,
    TokenVectors,
    offsets_of,
)
from service.documents.batch import EncodedDocuments, stored_outputs
from service.exceptions import InvalidRequestError
from service.ready_representations import colbert_of, dense_of, sparse_of

NameOf = Callable[[int], str]
"""The name of an encoded text, by its number."""


@dataclass(frozen=True, slots=True)
class BroughtText:
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
class BroughtTexts:
    """Those of some documents of a batch; texts: of each of these documents, one at least."""

    places: Int64
    fingerprints: Sequence[str]
    texts: Sequence[Sequence[BroughtText]]

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
        whole = [len(documents[place].text) for place in self.places.tolist()]
        spans = [
            (0, end) if text.span is None else text.span
            for end, some in zip(whole, self.texts, strict=True)
            for text in some
        ]
        representations = _joined(texts, settings)
        require_unit(representations, lambda text: texts[text].param)
        return EncodedDocuments(
            self.places,
            representations,
            offsets_of(np.array([len(some) for some in self.texts])),
            np.array(spans, np.int64),
        )


def _joined(texts: Sequence[BroughtText], settings: CollectionSettings) -> Representations:
    """What the collection stores of each text. Raises InvalidRequestError for a side that is missing."""
    outputs = stored_outputs(settings)
    dense, sparse, colbert = [], [], []
    for text in texts:
        for side in outputs:
            if getattr(text, side) is None:
                raise InvalidRequestError(f"{text.param}.{side} is missing; give it", f"{text.param}.{side}")
        if text.dense is not None:
            dense.append(dense_of(text.dense, settings, f"{text.param}.dense"))
        if text.sparse is not None:
            sparse.append(sparse_of(*text.sparse, settings, f"{text.param}.sparse"))
        if text.colbert is not None and "colbert" in outputs:
            colbert.append(colbert_of(text.colbert, settings, f"{text.param}.colbert"))
    return Representations(
        np.zeros(len(texts), np.int64),
        np.zeros(len(texts), np.bool_),
        np.stack(dense),
        SparseRows.concatenate(sparse),
        TokenVectors.concatenate(colbert) if colbert else None,
    )


def require_unit(representations: Representations, name_of: NameOf) -> None:
    """Raises InvalidRequestError for the first text with a dense or token vector that is not of unit length.

    Scores of other vectors would not be comparable, and searches rely on it. name_of: what a text is called.
    """
    for side, texts, lengths in wrong_lengths(representations):
        if len(texts) == 0:
            continue
        param = f"{name_of(int(texts[0]))}.{side}"
        raise InvalidRequestError(
            f"{param} has a vector of length {lengths[0]:.4g}; give unit vectors, as /embed does",
            param,
        )
