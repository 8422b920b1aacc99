"""Strings are numbered as they come, and written in order; nothing is kept of them then."""

from __future__ import annotations

import numpy as np

from tercet.index.files.memory_arrays import MemoryArrays
from tercet.index.files.packed_bytes import PackedBytes
from tercet.index.files.string_numbers import STRING_BYTES, StringNumbers


def test_strings_are_numbered_as_they_come_and_written_in_order() -> None:
    numbers, arrays, strings = StringNumbers(), MemoryArrays(), PackedBytes.of([b"milk", b"tea"])
    assert numbers.of(strings, np.array([1, 0, 1], np.int32)).tolist() == [1, 0, 1]
    assert numbers.of(PackedBytes.of([b"tea", b"oat"]), np.array([1, 0], np.int32)).tolist() == [2, 1]
    assert numbers.buffered_bytes == len(b"milkteaoat") + 3 * STRING_BYTES
    assert numbers.write(arrays, "words").tolist() == [0, 2, 1]
    assert PackedBytes.open(arrays, "words").take(np.arange(3)) == [b"milk", b"oat", b"tea"]
    assert numbers.buffered_bytes == 0
    assert numbers.of(strings, np.array([1], np.int32)).tolist() == [0]
