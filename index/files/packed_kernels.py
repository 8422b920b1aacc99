"""Compiled loops over packed byte strings; compiled and cached like those of `index/sparse/kernels.py`.

But for sorting and copying they are over in microseconds, and keep the interpreter's lock: a thread that lets
go of it for so short a time may wait milliseconds to have it back.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from index.compiled import compiled

Array = npt.NDArray[Any]


@compiled()
def _compared(left: Array, right: Array) -> Any:
    """Below 0, 0 or above 0, as the bytes on the left come before, equal or come after those on the right."""
    for position in range(min(len(left), len(right))):
        if left[position] != right[position]:
            return np.int64(left[position]) - np.int64(right[position])
    return len(left) - len(right)


@compiled()
def find_packed(
    data: Array, offsets: Array, order: Array, wanted: Array, wanted_offsets: Array, likely: Array
) -> Array:
    """The place of each of T wanted byte strings among X distinct ones, int64[T]; -1 where it is not there.

    data, wanted: uint8, packed; offsets: int64[X+1]; wanted_offsets: int64[T+1]; order: int64[X], the places
    by ascending string; likely: int64, which of the wanted to look for.
    """
    places = np.full(len(wanted_offsets) - 1, -1, np.int64)
    for string in likely:
        sought = wanted[wanted_offsets[string] : wanted_offsets[string + 1]]
        low, high = 0, len(offsets) - 1
        while low < high:
            middle = (low + high) // 2
            place = order[middle]
            compared = _compared(data[offsets[place] : offsets[place + 1]], sought)
            if compared == 0:
                places[string] = place
                break
            if compared < 0:
                low = middle + 1
            else:
                high = middle
    return places


@compiled()
def find_one(data: Array, offsets: Array, sought: Array, low: int, high: int) -> Any:
    """The place of a byte string among distinct ones that ascend, from place `low` up to `high`; -1 where it
    is not there.
    """
    while low < high:
        middle = (low + high) // 2
        compared = _compared(data[offsets[middle] : offsets[middle + 1]], sought)
        if compared == 0:
            return middle
        if compared < 0:
            low = middle + 1
        else:
            high = middle
    return -1


@compiled()
def common_packed(few: Array, few_offsets: Array, many: Array, many_offsets: Array) -> tuple[Array, Array]:
    """The places of the byte strings that two lists have in common, int64[K] in each, ascending.

    few, many: uint8, packed; offsets: int64[N+1]; both ascend without repeats. For each of the few the many
    are searched from where the last one was, in steps that double.
    """
    count, total = len(few_offsets) - 1, len(many_offsets) - 1
    own, others, found = np.empty(count, np.int64), np.empty(count, np.int64), 0
    low = 0
    for place in range(count):
        sought = few[few_offsets[place] : few_offsets[place + 1]]
        step, high = 1, low
        while high < total and _compared(many[many_offsets[high] : many_offsets[high + 1]], sought) < 0:
            low = high + 1
            high += step
            step *= 2
        high = min(high, total)
        while low < high:
            middle = (low + high) // 2
            if _compared(many[many_offsets[middle] : many_offsets[middle + 1]], sought) < 0:
                low = middle + 1
            else:
                high = middle
        if low == total:
            break
        if _compared(many[many_offsets[low] : many_offsets[low + 1]], sought) == 0:
            own[found] = place
            others[found] = low
            found += 1
    return own[:found], others[:found]


@compiled(nogil=True)
def sort_packed(data: Array, offsets: Array) -> Array:
    """The places of N packed byte strings in ascending order, int64[N]; equal ones stay as they are.

    data: uint8; offsets: int64[N+1]. A merge sort.
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
                    take_left = compared <= 0
                if take_left:
                    merged[place] = order[left]
                    left += 1
                else:
                    merged[place] = order[right]
                    right += 1
        order, merged = merged, order
        width *= 2
    return order


@compiled(nogil=True)
def new_packed(data: Array, offsets: Array, order: Array) -> Array:
    """Which of N packed byte strings, in ascending order int64[N] of places, differ from the one before:
    bool[N].
    """
    new = np.ones(len(order), np.bool_)
    for rank in range(1, len(order)):
        one, other = order[rank - 1], order[rank]
        compared = _compared(data[offsets[one] : offsets[one + 1]], data[offsets[other] : offsets[other + 1]])
        new[rank] = compared != 0
    return new


@compiled(nogil=True)
def first_packed(data: Array, offsets: Array, count: int) -> Array:
    """The places of the `count` smallest of N packed byte strings, int64[count], in no order.

    data: uint8; offsets: int64[N+1]; count: 1 to N. Of equal strings the first are the smallest. A heap has
    the largest of those kept on top, so that most strings are compared once.
    """
    heap = np.arange(count)
    for start in range(count // 2 - 1, -1, -1):
        _sink(data, offsets, heap, start)
    for place in range(count, len(offsets) - 1):
        top = heap[0]
        compared = _compared(data[offsets[place] : offsets[place + 1]], data[offsets[top] : offsets[top + 1]])
        if compared < 0:
            heap[0] = place
            _sink(data, offsets, heap, 0)
    return heap


@compiled(nogil=True)
def _sink(data: Array, offsets: Array, heap: Array, node: int) -> None:
    """Lets the string at a node of the heap sink below those that are larger."""
    while 2 * node + 1 < len(heap):
        larger = node
        for child in range(2 * node + 1, min(2 * node + 3, len(heap))):
            one, other = heap[child], heap[larger]
            compared = _compared(
                data[offsets[one] : offsets[one + 1]], data[offsets[other] : offsets[other + 1]]
            )
            if compared > 0 or (compared == 0 and one > other):
                larger = child
        if larger == node:
            return
        heap[node], heap[larger] = heap[larger], heap[node]
        node = larger


@compiled(nogil=True)
def gather_packed(data: Array, offsets: Array, positions: Array, gathered_offsets: Array) -> Array:
    """The bytes of the strings at K positions, one after the other: uint8.

    data: uint8; offsets: int64[N+1]; positions: int64[K]; gathered_offsets: int64[K+1], where each belongs.
    """
    gathered = np.empty(gathered_offsets[-1], np.uint8)
    for place, position in enumerate(positions):
        start = offsets[position]
        first = gathered_offsets[place]
        for step in range(offsets[position + 1] - start):
            gathered[first + step] = data[start + step]
    return gathered


@compiled()
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


@compiled()
def _bits_of(value: Any) -> Any:
    """The bits that a hash sets in a word of 64: its upper 24 bits name four of them."""
    bits = np.uint64(0)
    for shift in (40, 46, 52, 58):
        bits |= np.uint64(1) << ((value >> np.uint64(shift)) & np.uint64(63))
    return bits


@compiled()
def add_hashes(words: Array, hashes: Array) -> None:
    """Sets the bits of each hash, uint64[N], in its word of uint64[W]; W is a power of 2."""
    last = np.uint64(len(words) - 1)
    for value in hashes:
        words[value & last] |= _bits_of(value)


@compiled()
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
