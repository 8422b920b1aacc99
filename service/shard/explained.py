"""Explanations of documents, as messages: made by a shard, read by a router."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from tercet.index.bm25.explanation import Bm25Terms
from tercet.index.candidates import Window
from tercet.index.files.packed_bytes import PackedBytes
from tercet.index.search.explanation import Alignment, Explanation, MatchingTerms
from tercet.models.representations import Int64, offsets_of
from tercet.service.shard.messages import Array, Arrays, Message

NO_WINDOW = (-1, -1, -1)


def explanation_arrays(found: Sequence[Explanation]) -> Arrays:
    """The arrays of some explanations, those of all one after the other."""
    terms, alignments = [each.terms for each in found], [each.alignment for each in found]
    words = [each.bm25 for each in found if each.bm25 is not None]
    windows = [each.windows for each in terms if each.windows is not None]
    arrays: Arrays = {
        "terms": offsets_of(np.array([len(each.token_ids) for each in terms], np.int64)),
        "token_ids": _joined([each.token_ids for each in terms], np.int32),
        "query_weights": _joined([each.query_weights for each in terms], np.float64),
        "idf": _joined([each.idf for each in terms], np.float64),
        "document_weights": _joined([each.document_weights for each in terms], np.float64),
        "windows": _joined(windows, np.int64) if windows else None,
        "vectors": offsets_of(np.array([len(each.similarities) for each in alignments], np.int64)),
        "document_vectors": _joined([each.document_vectors for each in alignments], np.int64),
        "similarities": _joined([each.similarities for each in alignments], np.float64),
        "aligned": np.array([_numbers(each.window) for each in alignments], np.int64).reshape(-1, 3),
    }
    if words:
        arrays |= {
            "words": offsets_of(np.array([len(each.terms) for each in words], np.int64)),
            "word_terms": PackedBytes.of([term.encode() for each in words for term in each.terms]),
            "word_counts": _joined([each.counts for each in words], np.int64),
            "word_idf": _joined([each.idf for each in words], np.float64),
            "word_frequencies": _joined([each.frequencies for each in words], np.int64),
            "word_weights": _joined([each.weights for each in words], np.float64),
            "word_products": _joined([each.products for each in words], np.float64),
        }
    return arrays


def explanations_of(found: Message, count: int) -> list[Explanation]:
    """So many explanations of a message. Raises ValueError and its like."""
    terms, vectors = _offsets(found, "terms", count), _offsets(found, "vectors", count)
    total = int(terms[-1])
    token_ids = found.array("token_ids", np.int32, total)
    query_weights, idf, document_weights = (
        found.array(name, np.float64, total) for name in ("query_weights", "idf", "document_weights")
    )
    windows = found.array_or_none("windows", np.int64, total)
    document_vectors = found.array("document_vectors", np.int64, int(vectors[-1]))
    similarities = found.array("similarities", np.float64, int(vectors[-1]))
    aligned = found.array("aligned", np.int64, count, 3).tolist()
    words = _words_of(found, count)
    explanations = []
    for number, ((start, stop), (first, last)) in enumerate(
        zip(pairwise(terms.tolist()), pairwise(vectors.tolist()), strict=True)
    ):
        explanations.append(
            Explanation(
                MatchingTerms(
                    token_ids[start:stop],
                    query_weights[start:stop],
                    idf[start:stop],
                    document_weights[start:stop],
                    None if windows is None else windows[start:stop],
                ),
                Alignment(
                    document_vectors[first:last],
                    similarities[first:last],
                    None if tuple(aligned[number]) == NO_WINDOW else Window(*aligned[number]),
                ),
                words[number],
            )
        )
    return explanations


def _words_of(found: Message, count: int) -> list[Bm25Terms | None]:
    if "words" not in found.arrays:
        return [None] * count
    offsets = _offsets(found, "words", count)
    total = int(offsets[-1])
    terms = [term.decode() for term in found.strings("word_terms", total).take(np.arange(total))]
    counts, frequencies = (found.array(f"word_{name}", np.int64, total) for name in ("counts", "frequencies"))
    idf, weights, products = (
        found.array(f"word_{name}", np.float64, total) for name in ("idf", "weights", "products")
    )
    return [
        Bm25Terms(
            tuple(terms[start:stop]),
            counts[start:stop],
            idf[start:stop],
            frequencies[start:stop],
            weights[start:stop],
            products[start:stop],
        )
        for start, stop in pairwise(offsets.tolist())
    ]


def _offsets(found: Message, name: str, count: int) -> Int64:
    offsets: Int64 = found.array(name, np.int64, count + 1)
    if offsets[0] != 0 or (offsets[1:] < offsets[:-1]).any():
        raise ValueError(f"{name} does not ascend from 0")
    return offsets


def _joined(arrays: Sequence[Array], kind: type[np.generic]) -> Array:
    return np.concatenate([np.empty(0, kind), *arrays])


def _numbers(window: Window | None) -> tuple[int, int, int]:
    return NO_WINDOW if window is None else (window.index, window.start, window.end)
