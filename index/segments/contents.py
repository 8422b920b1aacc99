"""What must hold in a segment's files beyond what opening them checks: the checks of `verify`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tercet.index.bm25.cutting import MARK
from tercet.index.bm25.segment import Bm25Segment
from tercet.index.bm25.writer import FORWARD, LENGTHS, build_indexes
from tercet.index.catalog.manifest import SegmentEntry
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.dense.equal_rows import ROWS, EqualRows
from tercet.index.documents.field_indexes import index_of
from tercet.index.documents.fields import KeywordColumn, ScalarColumn, field_stems
from tercet.index.documents.store import MAX_ID_BYTES
from tercet.index.errors import DamagedIndexError
from tercet.index.files.array_folder import ArrayFolder
from tercet.index.files.arrays import Array, ArraySource
from tercet.index.files.packed_bytes import PackedBytes
from tercet.index.files.scratch import scratch_folder
from tercet.index.segments.segment import Segment
from tercet.index.sparse.forward_rows import STEM
from tercet.index.sparse.inverted_index import build_inverted
from tercet.index.sparse.term_statistics import FREQUENCIES, MASSES, TermStatistics
from tercet.index.token_vectors.store import TokenVectorStore
from tercet.models.representations import SparseRows

ROWS_AT_ONCE = 16_384

Fault = tuple[str, str]
"""An array's name and what is wrong in it."""


def segment_faults(segment: Segment, entry: SegmentEntry, settings: CollectionSettings) -> Iterator[Fault]:
    """Every fault found, reading all files in bounded memory; those of windows apart."""
    if not _all_finite(segment.vectors):
        yield "dense", "a value is not finite"
    yield from _equal_row_faults(segment)
    lexical_faults = list(forward_faults(segment.forward, settings.vocabulary_size))
    yield from lexical_faults or [
        *_rebuilt_faults(
            segment.arrays,
            lambda scratch: build_inverted(segment.forward, settings.vocabulary_size, scratch),
        ),
        *_statistics_faults(segment, settings.vocabulary_size),
    ]
    if segment.bm25 is not None:
        yield from _bm25_faults(segment.arrays, segment.bm25)
    if segment.token_vectors is not None:
        yield from _token_faults(segment.token_vectors)
    stored = 0 if segment.token_vectors is None else len(segment.token_vectors.codes)
    if stored != entry.tokens:
        yield "token_codes", f"holds {stored} token vectors, but the manifest counts {entry.tokens}"
    yield from _document_faults(segment)
    yield from _field_faults(segment, settings.first_fields if entry.fields is None else entry.fields)


def kept_ids_in_order(segment: Segment) -> Iterator[bytes]:
    """The ids of a segment by `id_order`, which is ascending where that is sound, without deleted ones."""
    documents = segment.documents
    for start in range(0, len(documents), ROWS_AT_ONCE):
        rows = documents.id_order[start : start + ROWS_AT_ONCE]
        yield from documents.ids.take(rows if segment.kept is None else rows[segment.kept[rows]])


def _equal_row_faults(segment: Segment) -> Iterator[Fault]:
    stored = EqualRows.open(segment.arrays, segment.encodings)
    if stored is None:
        return
    built = EqualRows.of(segment.vectors)
    if built is None or not _equal(stored.rows, built.rows) or not _equal(stored.offsets, built.offsets):
        yield ROWS, "does not name the rows of equal vectors"


def _all_finite(values: npt.NDArray[Any]) -> bool:
    starts = range(0, len(values), ROWS_AT_ONCE)
    return all(bool(np.isfinite(values[start : start + ROWS_AT_ONCE]).all()) for start in starts)


def forward_faults(forward: SparseRows, vocabulary_size: int, stem: str = STEM) -> Iterator[Fault]:
    """What is wrong in lexical rows by themselves, whose files begin with `stem`."""
    for start in range(0, len(forward), ROWS_AT_ONCE):
        indptr = forward.indptr[start : start + ROWS_AT_ONCE + 1]
        ids = forward.token_ids[indptr[0] : indptr[-1]]
        weights = forward.weights[indptr[0] : indptr[-1]]
        if len(ids) == 0:
            continue
        if ids.min() < 0 or ids.max() >= vocabulary_size:
            yield f"{stem}_token_ids", f"a token id is outside the vocabulary of {vocabulary_size}"
        begins = np.zeros(len(ids), np.bool_)
        begins[(indptr[:-1] - indptr[0])[np.diff(indptr) > 0]] = True
        if not (begins[1:] | (np.diff(ids) > 0)).all():
            yield f"{stem}_token_ids", "token ids do not ascend within a document"
        if not (np.isfinite(weights) & (weights > 0)).all():
            yield f"{stem}_weights", "a weight is not finite and above 0"


def _rebuilt_faults(arrays: ArraySource, build: Callable[[ArrayFolder], None]) -> Iterator[Fault]:
    """Builds an inverted index a second time: the same forward rows give the same arrays."""
    with scratch_folder() as scratch:
        rebuilt = ArrayFolder(scratch)
        build(rebuilt)
        for name in rebuilt.names():
            expected = rebuilt.written(name)
            stored = arrays.open(name, expected.dtype, expected.shape[1:])
            if not _equal(stored, expected):
                yield name, "is not what the forward rows give"


def _equal(left: Array, right: Array) -> bool:
    starts = range(0, len(left), ROWS_AT_ONCE)
    return len(left) == len(right) and all(
        np.array_equal(left[start : start + ROWS_AT_ONCE], right[start : start + ROWS_AT_ONCE])
        for start in starts
    )


def _statistics_faults(segment: Segment, vocabulary_size: int) -> Iterator[Fault]:
    if segment.statistics is None:
        return
    stored, counted = segment.statistics.read(), TermStatistics.of(segment.forward, vocabulary_size)
    if not np.array_equal(stored.frequencies, counted.frequencies):
        yield FREQUENCIES, "is not what the forward rows give"
    if not np.array_equal(stored.masses, counted.masses):
        yield MASSES, "is not what the forward rows give"


def _bm25_faults(arrays: ArraySource, part: Bm25Segment) -> Iterator[Fault]:
    if not _strictly_ascending(part.terms):
        yield "bm25_terms", "terms are not distinct and in order"
    faults = list(forward_faults(part.forward, len(part.terms), FORWARD)) + list(_length_faults(part))
    yield from faults or _rebuilt_faults(
        arrays, lambda scratch: build_indexes(part.forward, part.lengths, len(part.terms), scratch)
    )


def _length_faults(part: Bm25Segment) -> Iterator[Fault]:
    """A document's length is the sum of its words' frequencies, whole numbers; other spellings, whose terms
    begin with `MARK`, do not count.
    """
    indptr = part.forward.indptr
    of_words = np.append(part.terms.data, 0)[part.terms.offsets[:-1]] != ord(MARK)
    of_words = np.append(of_words, True)  # what a token id beyond the terms counts as, a fault of its own
    for start in range(0, len(part.lengths), ROWS_AT_ONCE):
        edges = indptr[start : start + ROWS_AT_ONCE + 1]
        frequencies = part.forward.weights[edges[0] : edges[-1]].astype(np.float64)
        if not (frequencies == np.floor(frequencies)).all():
            yield f"{FORWARD}_weights", "a frequency is no whole number"
        token_ids = part.forward.token_ids[edges[0] : edges[-1]]
        of_terms = of_words[np.where((token_ids >= 0) & (token_ids < len(part.terms)), token_ids, -1)]
        totals = np.append(0, np.cumsum(frequencies * of_terms))
        if not np.array_equal(np.diff(totals[edges - edges[0]]), part.lengths[start : start + ROWS_AT_ONCE]):
            yield LENGTHS, "a length is not the sum of its document's frequencies"


def _token_faults(store: TokenVectorStore) -> Iterator[Fault]:
    if store.scales is None:
        if not _all_finite(store.codes):
            yield "token_codes", "a value is not finite"
    elif not (np.isfinite(store.scales) & (store.scales >= 0)).all():
        yield "token_scales", "a scale is not finite or below 0"


def _document_faults(segment: Segment) -> Iterator[Fault]:
    documents = segment.documents
    if len(documents) and np.diff(documents.ids.offsets).max() > MAX_ID_BYTES:
        yield "ids_offsets", f"an id is longer than {MAX_ID_BYTES} bytes"
    counts = np.zeros(len(documents), np.bool_)
    counts[documents.id_order] = True
    if not counts.all():
        yield "id_order", "rows do not occur once each"
        return
    yield from _order_faults(segment)
    try:
        for row in range(len(documents)):
            documents.get(row)
    except DamagedIndexError as error:
        yield "documents", str(error)


def _order_faults(segment: Segment) -> Iterator[Fault]:
    former: bytes | None = None
    for identifier in kept_ids_in_order(segment):
        if former is not None and identifier <= former:
            file, fault = ("ids", "occurs twice") if identifier == former else ("id_order", "is out of order")
            yield f"{file}", f"document id {identifier.decode(errors='replace')!r} {fault}"
        former = identifier


def _field_faults(segment: Segment, fields: Sequence[str | None]) -> Iterator[Fault]:
    indexes = dict(segment.indexes.stored())
    stems = field_stems(fields)
    for name, column in segment.columns.items():
        stem = stems[name]
        if name in indexes and not indexes[name].same(index_of(column, len(segment))):
            yield stem, "has an index that is not what its values give"
        if isinstance(column, KeywordColumn):
            yield from _keyword_faults(column, stem)
        else:
            yield from _scalar_faults(column, stem)


def _scalar_faults(column: ScalarColumn, stem: str) -> Iterator[Fault]:
    further = column.further
    if not _all_finite(column.values):
        yield f"{stem}_values", "a value is not finite"
    if further is None:
        return
    if not _all_finite(further.values):
        yield f"{stem}_further", "a value is not finite"
    if (np.diff(further.rows) < 0).any() or not column.present[further.rows].all():
        yield f"{stem}_further_rows", "rows are out of order, or have no first value"


def _keyword_faults(column: KeywordColumn, stem: str) -> Iterator[Fault]:
    if not _strictly_ascending(column.strings):
        yield f"{stem}_strings", "strings are not distinct and in order"
    if (np.diff(column.rows) < 0).any():
        yield f"{stem}_rows", "rows are out of order"


def _strictly_ascending(strings: PackedBytes) -> bool:
    return all(strings[number] < strings[number + 1] for number in range(len(strings) - 1))
