"""The terms of many segments: where each lies among those of every segment, in one compiled call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from index.compiled import compiled
from index.files.addresses import address_of, array_at, bring_near
from index.files.arrays import frozen
from index.files.packed_bytes import PackedBytes
from index.files.packed_kernels import find_one
from models.representations import Int32, Int64

TERMS = np.dtype([(name, np.int64) for name in ("data", "offsets", "count", "beginnings", "frequencies")])

STEP = 16  # terms, of which the first one's beginning is kept
BEGINNING = 8  # bytes

Array = npt.NDArray[Any]
UInt64 = npt.NDArray[np.uint64]


def beginnings_of(terms: PackedBytes) -> UInt64:
    """The first bytes of every so many-th of X terms, as numbers in the same order: uint64[⌈X / STEP⌉].

    They lie close together, so that a term is looked for in few cache lines.
    """
    found: UInt64 = _beginnings(frozen(terms.data), frozen(terms.offsets), STEP)
    return found


class TermTable:
    """The terms of S segments, ascending, with their beginnings as `beginnings_of` gives them; and of each
    segment int32[X], how many documents have each.
    """

    def __init__(
        self, terms: Sequence[PackedBytes], beginnings: Sequence[UInt64], frequencies: Sequence[Int32]
    ) -> None:
        # They have to stay as long as the addresses.
        self._arrays = [
            (frozen(each.data), frozen(each.offsets), frozen(first), frozen(counts))
            for each, first, counts in zip(terms, beginnings, frequencies, strict=True)
        ]
        self._records = np.array(
            [
                (
                    address_of(data, np.uint8),
                    address_of(offsets, np.int64),
                    len(offsets) - 1,
                    address_of(beginnings, np.uint64),
                    address_of(counts, np.int32),
                )
                for data, offsets, beginnings, counts in self._arrays
            ],
            TERMS,
        )

    def find(self, wanted: PackedBytes) -> tuple[Int32, Int64]:
        """The number of each of T terms in each segment, int32[S, T], -1 where it is not there; and how many
        documents have it in all, int64[T].
        """
        places = np.empty((len(self._records), len(wanted)), np.int32)
        frequencies = np.zeros(len(wanted), np.int64)
        _find_terms(self._records, frozen(wanted.data), frozen(wanted.offsets), places, frequencies)
        return places, frequencies


@compiled(nogil=True)
def beginning(string: Array) -> Any:
    """The first bytes of a string, uint8, as a number; 0 for those that it lacks."""
    number = np.uint64(0)
    for position in range(BEGINNING):
        number <<= np.uint64(8)
        if position < len(string):
            number |= np.uint64(string[position])
    return number


@compiled(nogil=True)
def _beginnings(data: Array, offsets: Array, step: int) -> Array:
    """Those of every so many-th string."""
    found = np.empty((len(offsets) - 1 + step - 1) // step, np.uint64)
    for place in range(len(found)):
        found[place] = beginning(data[offsets[step * place] : offsets[step * place + 1]])
    return found


@compiled(nogil=True)
def _find_terms(records: Array, wanted: Array, offsets: Array, places: Array, frequencies: Array) -> None:
    """Writes what `TermTable.find` gives.

    Each step is taken for all terms of a segment before the next one, and asks memory for what that needs:
    places of a term lie anywhere, and a term alone would wait for one after the other.
    """
    terms = len(offsets) - 1
    first_bytes = _beginnings(wanted, offsets, 1)
    lows, highs = np.empty(terms, np.int64), np.empty(terms, np.int64)
    for segment in range(len(records)):
        record = records[segment]
        own_offsets = array_at(record.offsets, record.count + 1, np.int64)
        data = array_at(record.data, own_offsets[record.count], np.uint8)
        samples = array_at(record.beginnings, (record.count + STEP - 1) // STEP, np.uint64)
        counts = array_at(record.frequencies, record.count, np.int32)
        for term in range(terms):
            first = np.searchsorted(samples, first_bytes[term])
            last = first
            while last < len(samples) and samples[last] == first_bytes[term]:
                last += 1
            lows[term], highs[term] = STEP * max(0, first - 1), min(STEP * last, record.count)
            size = own_offsets.itemsize * (highs[term] - lows[term] + 1)
            bring_near(record.offsets + own_offsets.itemsize * lows[term], size)
        for term in range(terms):
            start, end = own_offsets[lows[term]], own_offsets[highs[term]]
            bring_near(record.data + start, end - start)
        for term in range(terms):
            sought = wanted[offsets[term] : offsets[term + 1]]
            place = find_one(data, own_offsets, sought, lows[term], highs[term])
            places[segment, term] = place
            bring_near(record.frequencies + counts.itemsize * max(place, 0), counts.itemsize)
        for term in range(terms):
            if places[segment, term] >= 0:
                frequencies[term] += counts[places[segment, term]]
