"""A query's terms, weighed by what all segments of a snapshot know of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from index.bm25.analysis import Analyzer
from index.bm25.formula import SCALE, mean_length
from index.bm25.languages import Bm25Language
from index.bm25.segment import Bm25Segment, SegmentTerms
from index.bm25.vocabulary import find_terms
from index.files.packed_bytes import PackedBytes
from index.sparse.idf import inverse_document_frequencies
from models.representations import Float64, Int32, Int64


@dataclass(frozen=True, slots=True)
class Bm25Query:
    """The T distinct terms of a query that some document has, ascending.

    counts: int64[T], n_q(t); idf: float64[T]; places: int32[S, T], the number of each term in each of S
    segments, or -1; parts: the terms that each segment has.
    """

    terms: tuple[str, ...]
    counts: Int64
    idf: Float64
    places: Int32
    parts: tuple[SegmentTerms, ...]


class Bm25Statistics:
    """What a snapshot's segments together know: documents, lengths, and how many documents have a term."""

    def __init__(self, language: Bm25Language, segments: Sequence[Bm25Segment]) -> None:
        self._language = language
        self._documents = sum(segment.documents for segment in segments)
        self._mean_length = mean_length(sum(segment.total_length for segment in segments), self._documents)

    def query(self, text: str, segments: Sequence[Bm25Segment]) -> Bm25Query:
        """The terms of a text, for the segments that this was made of."""
        counted = Analyzer(self._language).counts(text)
        terms = sorted(counted)
        encoded = PackedBytes.of([term.encode() for term in terms])
        places = np.empty((len(segments), len(terms)), np.int32)
        frequencies = np.zeros(len(terms), np.int64)
        for segment, found in zip(segments, places, strict=True):
            found[:] = find_terms(segment.terms, encoded)
            frequencies[found >= 0] += segment.frequencies.read()[found[found >= 0]]
        known = np.flatnonzero(frequencies)
        places = places[:, known]
        counts = np.array([counted[terms[term]] for term in known.tolist()], np.int64)
        rarity = inverse_document_frequencies(self._documents, frequencies[known])
        weights = (SCALE * counts * rarity).astype(np.float32)
        return Bm25Query(
            tuple(terms[term] for term in known.tolist()),
            counts,
            rarity,
            places,
            tuple(
                SegmentTerms(found[found >= 0], weights[found >= 0], segment.saturation(self._mean_length))
                for segment, found in zip(segments, places, strict=True)
            ),
        )
