"""Byte strings packed end to end, and binary search over ordered ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tercet.index.errors import DamagedIndexError
from tercet.index.files.array_folder import ArrayFolder
from tercet.index.files.packed_bytes import (
    PackedBytes,
    PackedBytesWriter,
    common_strings,
    distinct,
    first_not_below,
    first_of,
    open_offsets,
    order_of,
)

STRINGS = [b"ab", b"", b"\x00\xff", "시조".encode(), b""]


def write(folder: Path) -> None:
    writer = PackedBytesWriter(ArrayFolder(folder), "words")
    writer.append(PackedBytes.of(STRINGS[:2]))
    writer.append(PackedBytes.of([]))
    writer.append(PackedBytes.of(STRINGS).span(2, 5))
    writer.finish()
    assert writer.total_bytes == sum(map(len, STRINGS)) + 6 * 8


def test_strings_come_back(tmp_path: Path) -> None:
    write(tmp_path)
    packed = PackedBytes.open(ArrayFolder(tmp_path), "words", 5)
    assert len(packed) == 5
    assert [packed[place] for place in range(5)] == STRINGS
    assert packed.take(np.array([3, 0, 3])) == [STRINGS[3], STRINGS[0], STRINGS[3]]
    assert packed.gather(np.array([3, 0])).take(np.arange(2)) == [STRINGS[3], STRINGS[0]]
    assert len(PackedBytes.open(ArrayFolder(tmp_path), "words")) == 5


def test_another_count_is_refused(tmp_path: Path) -> None:
    write(tmp_path)
    with pytest.raises(DamagedIndexError, match=r"words_offsets\.npy has 176 bytes"):
        PackedBytes.open(ArrayFolder(tmp_path), "words", 4)


def test_offsets_ascend_from_zero(tmp_path: Path) -> None:
    for offsets in ([1, 2], [0, -1], [0, 3, 2], [0, 2**40, 3], []):
        arrays, name = ArrayFolder(tmp_path), f"offsets_{len(list(tmp_path.iterdir()))}"
        arrays.write(name, np.array(offsets, np.int64))
        with pytest.raises(DamagedIndexError, match="does not ascend from 0"):
            open_offsets(arrays, name)


def test_binary_search_finds_the_first_not_below() -> None:
    words = [b"b", b"d", b"d", b"f"]
    found = [
        first_not_below(4, words.__getitem__, wanted) for wanted in (b"a", b"b", b"c", b"d", b"e", b"f", b"g")
    ]
    assert found == [0, 0, 1, 1, 3, 3, 4]
    assert first_not_below(0, words.__getitem__, b"a") == 0


def test_hashes_are_of_the_strings_alone() -> None:
    strings = PackedBytes.of([b"", b"a", b"foobar", b"a"])
    # The published FNV-1a values of these, their halves mixed by a multiplication.
    published = [0xCBF29CE484222325, 0xAF63DC4C8601EC8C, 0x85944171F73967E8, 0xAF63DC4C8601EC8C]
    mixed = [(value ^ (value >> 32)) * 0x9E3779B97F4A7C15 % 2**64 for value in published]
    assert strings.hashes.tolist() == [value ^ (value >> 32) for value in mixed]
    assert strings.span(2, 4).hashes.tolist() == strings.hashes[2:].tolist()
    assert PackedBytes.of([]).hashes.tolist() == []


def test_the_order_is_that_of_the_bytes() -> None:
    random = np.random.default_rng(3)
    strings = list({random.bytes(int(length)) for length in random.integers(0, 4, 500)} | {b"a\0", b"a", b""})
    for count in (0, 1, 2, 3, len(strings)):
        some = strings[:count]
        assert order_of(PackedBytes.of(some)).tolist() == sorted(range(count), key=some.__getitem__)


@settings(deadline=None)  # the first example compiles
@given(st.sets(st.binary(max_size=3)), st.sets(st.binary(max_size=3)))
def test_what_two_lists_have_in_common(strings: set[bytes], wanted: set[bytes]) -> None:
    ordered = sorted(strings)
    places = common_strings(PackedBytes.of(ordered), PackedBytes.of(sorted(wanted)))
    assert [ordered[place] for place in places] == sorted(strings & wanted)


@settings(deadline=None)  # likewise
@given(strings=st.lists(st.binary(max_size=4), max_size=60), data=st.data())
def test_copies_distinct_strings_and_the_smallest(strings: list[bytes], data: st.DataObject) -> None:
    packed = PackedBytes.of(strings)
    chosen = data.draw(st.lists(st.integers(0, len(strings) - 1), max_size=20) if strings else st.just([]))
    gathered = packed.gather(np.array(chosen, np.int64))
    assert gathered.take(np.arange(len(gathered))) == [strings[place] for place in chosen]
    first, numbers = distinct(packed)
    assert packed.take(first) == sorted(set(strings))
    assert first.tolist() == [strings.index(each) for each in sorted(set(strings))]
    assert [packed[first[number]] for number in numbers] == strings
    ids = sorted(set(strings), key=hash)
    for count in range(1, len(ids) + 1):
        places = first_of(PackedBytes.of(ids), count)
        assert sorted(ids[place] for place in places) == sorted(ids)[:count]
    for count in range(1, len(strings) + 1):  # of equal strings the first
        assert sorted(first_of(packed, count).tolist()) == sorted(order_of(packed)[:count].tolist())
