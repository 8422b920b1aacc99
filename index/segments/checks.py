"""Documents and their representations, checked against a collection's settings before anything is written."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tercet.index.bm25.analysis import Analyzer
from tercet.index.bm25.words import count_words
from tercet.index.candidates import Document
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.documents.checked import CheckedDocuments
from tercet.index.errors import InvalidDocumentError
from tercet.index.segments.rows import DocumentRows, Float16
from tercet.index.token_codecs import CODED
from tercet.index.token_vectors.pooling import pooled
from tercet.index.token_vectors.store import TokenVectorStore, code_dtype
from tercet.index.windows.store import DocumentWindows
from tercet.models.representations import UNIT_ERROR, Int64, Representations, SparseRows, TokenVectors

LARGEST_VALUE = 1e6  # of a token vector; beyond it sums in float32 could overflow


def check_batch(
    documents: Sequence[Document],
    representations: Representations,
    settings: CollectionSettings,
    windows: DocumentWindows | None = None,
    analyzer: Analyzer | None = None,
    *,
    already_pooled: bool = False,
) -> DocumentRows:
    """The stored form of documents, after checks of types, limits, declared fields, windows, dimensions and
    finiteness. In a collection with windows, documents without them have one each, all of their text. Token
    vectors may have any length, 0 too, and are scored as they are, where they are stored value by value
    (float16, int8); where a codebook or pooling keeps directions alone, it is 1.

    analyzer: for BM25, one that remembers words from batch to batch; by default a new one. already_pooled:
    whether tokens share vectors already, where the settings say that they shall.
    Raises InvalidDocumentError, naming the first document at fault.
    """
    checked = CheckedDocuments.of(documents, settings.fields, partitioned=settings.partitioned)
    if windows is None and settings.window is not None:
        windows = DocumentWindows.whole(documents)
    offsets = _check_windows(documents, windows, settings)
    if offsets[-1] != len(representations):
        what = "documents" if windows is None else "windows"
        raise InvalidDocumentError(
            f"{offsets[-1]} {what} came with {len(representations)} representations; give one for each"
        )
    owners = np.repeat(np.arange(len(documents)), np.diff(offsets))  # (W,), the document of each encoding
    encoded = [documents[row] for row in owners.tolist()]
    dense = _check_dense(encoded, representations, settings)
    sparse = _check_sparse(encoded, representations.sparse, settings)
    tokens = words = None
    if settings.stores_token_vectors:
        colbert = _check_colbert(encoded, representations.colbert, settings)
        if not already_pooled:
            colbert = pooled(colbert, settings.token_pooling)
        tokens = TokenVectorStore.encode(colbert, settings.token_codec, settings.codebook)
    if settings.bm25:
        complete = documents[: len(documents) - (windows is not None and windows.continues)]
        texts = [document.encoded_text for document in complete]
        words = count_words(texts, analyzer or Analyzer(settings.bm25_language))
    return DocumentRows(
        checked.ids,
        checked.contents,
        np.zeros(len(documents), np.int64),
        checked.columns,
        offsets,
        dense,
        sparse,
        tokens,
        words,
        windows,
    )


def _check_windows(
    documents: Sequence[Document], windows: DocumentWindows | None, settings: CollectionSettings
) -> Int64:
    """The encodings of each document, int64[B+1]."""
    if windows is None:
        return np.arange(len(documents) + 1, dtype=np.int64)
    if settings.window is None:
        raise InvalidDocumentError(f"collection {settings.name!r} has no windows; add documents without them")
    offsets = _check_offsets(windows.offsets, len(documents), len(windows.spans), "window offsets")
    _require_all(documents, np.diff(offsets) > 0, "it has no window")
    owners = np.repeat(np.arange(len(documents)), np.diff(offsets))
    lengths = np.array([len(document.text) for document in documents], np.int64)[owners]
    starts, ends = windows.spans[:, 0], windows.spans[:, 1]
    inside = (starts >= 0) & (starts <= ends) & (ends <= lengths)
    _require_items(documents, owners, inside, "a window lies outside its text")
    return offsets


def _check_dense(
    documents: Sequence[Document], representations: Representations, settings: CollectionSettings
) -> Float16:
    if settings.dense_dimension == 0 and representations.dense is None:
        return np.empty((len(documents), 0), np.float16)
    if representations.dense is None:
        raise InvalidDocumentError("the dense vectors are missing; encode documents with all outputs")
    expected = (len(documents), settings.dense_dimension)
    if representations.dense.shape != expected:
        raise InvalidDocumentError(
            f"dense vectors have shape {representations.dense.shape}; the collection needs {expected}"
        )
    with np.errstate(over="ignore"):
        dense = representations.dense.astype(np.float16)
    sound: npt.NDArray[np.bool_] = np.logical_and.reduce(np.isfinite(dense), axis=1)
    _require_all(documents, sound, "a dense value is not finite in float16")
    return dense


def _check_sparse(
    documents: Sequence[Document], sparse: SparseRows | None, settings: CollectionSettings
) -> SparseRows:
    if settings.vocabulary_size == 0 and sparse is None:
        nothing = np.zeros(len(documents) + 1, np.int64)
        return SparseRows(nothing, np.empty(0, np.int32), np.empty(0, np.float32))
    if sparse is None:
        raise InvalidDocumentError("the sparse weights are missing; encode documents with all outputs")
    indptr = _check_offsets(sparse.indptr, len(documents), len(sparse.token_ids), "sparse indptr")
    if len(sparse.weights) != len(sparse.token_ids):
        raise InvalidDocumentError(
            f"{len(sparse.token_ids)} sparse token ids came with {len(sparse.weights)} weights; "
            "give one for each"
        )
    inside = (sparse.token_ids >= 0) & (sparse.token_ids < settings.vocabulary_size)
    ascending = np.ones(len(inside), np.bool_)
    ascending[1:] = np.diff(sparse.token_ids.astype(np.int64)) > 0
    ascending[indptr[:-1][indptr[:-1] < len(ascending)]] = True
    positive = np.isfinite(sparse.weights) & (sparse.weights > 0)
    owners = np.repeat(np.arange(len(documents)), np.diff(indptr))
    limit = f"a sparse token id is outside the vocabulary of {settings.vocabulary_size}"
    for good, fault in (
        (inside, limit),
        (ascending, "sparse token ids do not ascend"),
        (positive, "a sparse weight is not finite and above 0"),
    ):
        _require_items(documents, owners, good, fault)
    return SparseRows(
        indptr, sparse.token_ids.astype(np.int32, copy=False), sparse.weights.astype(np.float32, copy=False)
    )


def _check_colbert(
    documents: Sequence[Document], colbert: TokenVectors | None, settings: CollectionSettings
) -> TokenVectors:
    if colbert is None:
        raise InvalidDocumentError(
            "the token vectors are missing; encode documents with all outputs, or use token_codec none"
        )
    if colbert.vectors.ndim != 2 or colbert.vectors.shape[1] != settings.colbert_dimension:
        raise InvalidDocumentError(
            f"token vectors have shape {colbert.vectors.shape}; "
            f"the collection needs {settings.colbert_dimension} values each"
        )
    offsets = _check_offsets(colbert.offsets, len(documents), len(colbert.vectors), "colbert offsets")
    as_float16 = code_dtype(settings.token_codec) == np.float16
    largest = float(np.finfo(np.float16).max) if as_float16 else LARGEST_VALUE
    owners = np.repeat(np.arange(len(documents)), np.diff(offsets))
    # A NaN fails the comparison, so one pass finds both faults.
    finite: npt.NDArray[np.bool_] = np.logical_and.reduce(np.abs(colbert.vectors) <= largest, axis=1)
    fault = f"a token vector is not finite in {settings.token_codec}, which takes values up to {largest:g}"
    _require_items(documents, owners, finite, fault)
    if settings.token_codec in CODED or settings.token_pooling > 1:
        lengths = np.sqrt(np.einsum("ij,ij->i", colbert.vectors, colbert.vectors))
        fault = (
            f"a token vector is not of length 1, within {UNIT_ERROR:.0%}; token_codec {settings.token_codec} "
            f"with token_pooling {settings.token_pooling} keeps directions alone, so scale it, or use int8 "
            "without pooling"
        )
        _require_items(documents, owners, np.abs(lengths - 1) <= UNIT_ERROR, fault)
    return TokenVectors(colbert.vectors, offsets)


def _check_offsets(offsets: Int64, rows: int, items: int, what: str) -> Int64:
    sound = offsets.shape == (rows + 1,) and offsets[0] == 0 and offsets[-1] == items
    if not sound or (np.diff(offsets) < 0).any():
        raise InvalidDocumentError(f"{what} must ascend from 0 to {items} in {rows + 1} steps")
    return offsets.astype(np.int64, copy=False)


def _require_items(
    documents: Sequence[Document], owners: Int64, sound: npt.NDArray[np.bool_], fault: str
) -> None:
    """Raises for the first document with an unsound item; `owners` has the document of each item."""
    of_documents = np.ones(len(documents), np.bool_)
    of_documents[owners[~sound]] = False
    _require_all(documents, of_documents, fault)


def _require_all(documents: Sequence[Document], sound: npt.NDArray[np.bool_], fault: str) -> None:
    if not sound.all():
        raise InvalidDocumentError(f"document {documents[int(np.argmin(sound))].id!r}: {fault}")
