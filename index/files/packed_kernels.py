"""Compiled loops over packed byte strings; compiled and cached like those of `index/sparse/kernels.py`.

But for sorting they are over in microseconds, and keep the interpreter's lock: a thread that lets go of it
for so short a time may wait milliseconds to have it back.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

Array = npt.NDArray[Any]


@njit(cache=True)
def _compared(left: Array, right: Array) -> Any:
    """Below 0, 0 or above 0, as the bytes on the left come before, equal or come after those on the right."""
    for position in range(min(len(left), len(right))):
        if left[position] != right[position]:
            return np.int64(left[position]) - np.int64(right[position])
    return len(left) - len(right)


@njit(cache=True)
def find_packed(
    data: Array, offsets: Array, order: Array, wanted: Array, wanted_offsets: Array, likely: Array
) -> Array:
    """The place of each of T wanted byte strings among X distinct ones, int64[T]; -1 where it is not there.

    data, wanted: uint8, packed; offsets: int64[X+1]; wanted_offsets: int64[T+1]; order: int64[X], the places
    by ascending string, or int64[0] where the strings themselves ascend; likely: int64, which of the wanted
    to look for.
    """
    places = np.full(len(wanted_offsets) - 1, -1, np.int64)
    for string in likely:
        sought = wanted[wanted_offsets[string] : wanted_offsets[string + 1]]
        low, high = 0, len(offsets) - 1
        while low < high:
            middle = (low + high) // 2
            place = order[middle] if len(order) else np.int64(middle)
            compared = _compared(data[offsets[place] : offsets[place + 1]], sought)
            if compared == 0:
                places[string] = place
                break
            if compared < 0:
                low = middle + 1
            else:
                high = middle
    return places


@njit(cache=True, nogil=True)
def sort_packed(data: Array, offsets: Array) -> Array:
    """The places of N distinct packed byte strings in ascending order, int64[N]: a merge sort.

    data: uint8; offsets: int64[N+1].
    """
    count = len(offsets) - 1
    order, merged = np.arange(count), np.empty(count, np.int64)
    width = 1
    while width < count:
        for start in range(0, count, 2 * width):
            middle, stop = min(start + width, count), min(start + 2 * width, count)
            left, right = start, middle
            for place in range(start, stop):
                take_left = right >= stop
                if left < middle and not take_left:
                    one, other = order[left], order[right]
                    compared = _compared(
                        data[offsets[one] : offsets[one + 1]], data[offsets[other] : offsets[other + 1]]
                    )
                    take_left = compared < 0
                if take_left:
                    merged[place] = order[left]
                    left += 1
                else:
                    merged[place] = order[right]
                    right += 1
        order, merged = merged, order
        width *= 2
    return order


@njit(cache=True)
def hash_packed(data: Array, offsets: Array) -> Array:
    """A hash of each of N packed byte strings, uint64[N]: FNV-1a of 64 bits, each of which then tells on all.

    data: uint8; offsets: int64[N+1].
    """
    hashes = np.empty(len(offsets) - 1, np.uint64)
    for string in range(len(hashes)):
        value = np.uint64(0xCBF29CE484222325)
        for position in range(offsets[string], offsets[string + 1]):
            value = (value ^ np.uint64(data[position])) * np.uint64(0x100000001B3)
        value = (value ^ (value >> np.uint64(32))) * np.uint64(0x9E3779B97F4A7C15)
        hashes[string] = value ^ (value >> np.uint64(32))
    return hashes


@njit(cache=True)
def _bits_of(value: Any) -> Any:
    """The bits that a hash sets in a word of 64: its upper 24 bits name four of them."""
    bits = np.uint64(0)
    for shift in (40, 46, 52, 58):
        bits |= np.uint64(1) << ((value >> np.uint64(shift)) & np.uint64(63))
    return bits


@njit(cache=True)
def add_hashes(words: Array, hashes: Array) -> None:
    """Sets the bits of each hash, uint64[N], in its word of uint64[W]; W is a power of 2."""
    last = np.uint64(len(words) - 1)
    for value in hashes:
        words[value & last] |= _bits_of(value)


@njit(cache=True)
def passing_hashes(words: Array, hashes: Array) -> Array:
    """The places of the hashes, uint64[T], all of whose bits are set in uint64[W]: int64, ascending."""
    last = np.uint64(len(words) - 1)
    places, count = np.empty(len(hashes), np.int64), 0
    for place, value in enumerate(hashes):
        bits = _bits_of(value)
        if words[value & last] & bits == bits:
            places[count] = place
            count += 1
    return places[:count]
