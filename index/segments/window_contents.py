"""What must hold in the files of a segment's windows beyond what opening them checks: checks of `verify`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tercet.index.errors import DamagedIndexError
from tercet.index.segments.contents import Fault, forward_faults
from tercet.index.segments.segment import Segment
from tercet.index.windows.store import LEXICAL_STEM, WindowStore, largest_weights
from tercet.models.representations import SparseRows

WINDOWS_AT_ONCE = 16_384


def window_faults(segment: Segment, vocabulary_size: int) -> Iterator[Fault]:
    """Every fault found, reading all files in bounded memory; none in a collection without windows."""
    store = segment.windows
    if store is None:
        return
    lexical_faults = list(forward_faults(store.lexical, vocabulary_size, LEXICAL_STEM))
    yield from lexical_faults or _faults_of_sound_rows(segment, store)


def _faults_of_sound_rows(segment: Segment, store: WindowStore) -> Iterator[Fault]:
    if not _spans_fit(segment, store):
        yield "window_spans", "a window lies outside its document's text, or before the one before it"
    step = max(1, WINDOWS_AT_ONCE * len(segment) // max(1, len(store)))
    for start in range(0, len(segment), step):
        if not _gives_forward_rows(segment.forward, store, start, min(start + step, len(segment))):
            yield "window_lexical_weights", "the forward rows are not the largest weights of the windows"
            return


def _spans_fit(segment: Segment, store: WindowStore) -> bool:
    for row in range(len(segment)):
        spans = store.spans[store.of(row)]
        try:
            text = segment.documents.get(row).text
        except DamagedIndexError:
            continue  # told of the documents
        inside = (spans[:, 0] >= 0) & (spans[:, 0] <= spans[:, 1]) & (spans[:, 1] <= len(text))
        if not inside.all() or (np.diff(spans[:, 0]) < 0).any():
            return False
    return True


def _gives_forward_rows(forward: SparseRows, store: WindowStore, start: int, stop: int) -> bool:
    """Whether documents of several windows have their largest weights, and others no window's row."""
    offsets = store.offsets[start : stop + 1]
    largest = largest_weights(store.lexical.take(np.arange(offsets[0], offsets[-1])), offsets - offsets[0])
    several = np.diff(offsets) > 1
    given, expected = (
        rows.take(np.flatnonzero(several) + shift) for rows, shift in ((largest, 0), (forward, start))
    )
    return (
        np.array_equal(given.indptr, expected.indptr)
        and np.array_equal(given.token_ids, expected.token_ids)
        and np.array_equal(given.weights, expected.weights)
        and not np.diff(largest.indptr)[~several].any()
    )
