"""Counted strings beside a count of Python's, in any number of segments."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

from tercet.index.errors import DamagedIndexError
from tercet.index.files.packed_bytes import PackedBytes
from tercet.index.native import kernels

VARIANTS = [kernels.kernels_of(name) for name in kernels.AVAILABLE_INSTRUCTIONS]
SEEDS = (0, 1, (1 << 63) - 1)

Values = list[list[bytes]]


def column(values: Values) -> Any:
    """The strings that each document has, as a segment has them."""
    strings = sorted({string for some in values for string in some})
    packed = PackedBytes.of(strings)
    codes = [strings.index(string) for some in values for string in some]
    rows = np.repeat(np.arange(len(values)), [len(some) for some in values])
    return kernels.keyword_column(packed.data, packed.offsets, np.array(codes, np.int32), rows)


def counted(segments: list[Values], masks: list[Any], limit: int, seed: int) -> list[Any]:
    """What each variant finds: strings with their counts, how many there are, and documents that have any."""
    columns = tuple(column(values) for values in segments)
    strings = [sorted({string for some in values for string in some}) for values in segments]
    packed = [np.packbits(mask, bitorder="little") for mask in masks if mask is not None]
    begins, begin = [], 0
    for mask in masks:
        begins.append(-1 if mask is None else begin)
        begin += 0 if mask is None else -(-len(mask) // 8)
    sizes, bits = (
        np.array([len(values) for values in segments], np.int64),
        np.concatenate([np.empty(0, np.uint8), *packed]),
    )
    found = []
    for variant in VARIANTS:
        table, distinct, having = variant["count_facet"](
            columns, sizes, bits, np.array(begins, np.int64), limit, seed
        )
        values = [(strings[segment][place], count) for segment, place, count in table.reshape(-1, 3).tolist()]
        found.append((values, distinct, having))
    return found


def expected(segments: list[Values], masks: list[Any], limit: int) -> Any:
    kept = [
        some
        for values, mask in zip(segments, masks, strict=True)
        for row, some in enumerate(values)
        if some and (mask is None or mask[row])
    ]
    counts = Counter(string for some in kept for string in set(some))
    return sorted(counts.items(), key=lambda each: (-each[1], each[0]))[:limit], len(counts), len(kept)


def drawn(random: np.random.Generator, documents: int, distinct: int, most: int) -> Values:
    """Strings of many lengths, of which some are the beginning of others."""
    return [
        [
            b"ab" * (number % 13) + str(number).encode()
            for number in random.integers(0, distinct, count).tolist()
        ]
        for count in random.integers(0 if most > 1 else most, most + 1, documents).tolist()
    ]


@pytest.mark.parametrize("sizes", [[], [0], [50], [50, 0, 3], [40] * 7])
@pytest.mark.parametrize("distinct", [1, 5, 1_000])
@pytest.mark.parametrize("most", [1, 3])
def test_counts_are_those_of_the_documents(sizes: list[int], distinct: int, most: int) -> None:
    random = np.random.default_rng(len(sizes) + distinct + most)
    segments = [drawn(random, size, distinct, most) for size in sizes]
    for share in (None, 0.0, 0.3, 1.0):
        masks = [
            None if share is None or random.random() < 0.2 else random.random(size) < share for size in sizes
        ]
        for limit in (1, 4, 10_000):
            for seed in SEEDS:
                found = counted(segments, masks, limit, seed)
                assert found == [expected(segments, masks, limit)] * len(VARIANTS)


def test_ranges_of_strings_are_merged_one_after_the_other() -> None:
    """Segments of far more strings than a range has, of which some lie apart and some have the same."""
    numbers = [range(30_000), range(20_000, 50_000), range(90_000, 91_000), range(0, 91_000, 1_000)]
    segments = [[[b"%06d" % number] for number in some] for some in numbers]
    columns = [PackedBytes.of([string for (string,) in values]) for values in segments]
    records = tuple(
        kernels.keyword_column(
            each.data, each.offsets, np.arange(len(each), dtype=np.int32), np.arange(len(each))
        )
        for each in columns
    )
    sizes = np.array([len(values) for values in segments])
    for variant in VARIANTS:
        table, distinct, having = variant["count_facet"](
            records, sizes, np.empty(0, np.uint8), np.full(4, -1), 11, 7
        )
        assert (distinct, having) == (len({number for some in numbers for number in some}), sizes.sum())
        found = [(columns[segment][place], count) for segment, place, count in table.reshape(-1, 3).tolist()]
        thrice = [(b"%06d" % number, 3) for number in range(20_000, 30_000, 1_000)]
        assert found == [*thrice, (b"000000", 2)]


@pytest.mark.parametrize(
    ("codes", "rows", "begin", "message"),
    [
        ([2], [0], -1, "the code of a string in what count_facet reads is 2, outside of 0 up to 2"),
        ([1], [9], 0, "a row in what count_facet reads is 9, outside of 0 up to 9"),
        ([1], [0], 1, "the beginning of bits in what count_facet reads is 1, outside of 0 up to 1"),
    ],
)
def test_what_leads_nowhere_is_refused(codes: list[int], rows: list[int], begin: int, message: str) -> None:
    strings = PackedBytes.of([b"a", b"b"])
    record = kernels.keyword_column(strings.data, strings.offsets, np.array(codes, np.int32), np.array(rows))
    with pytest.raises(DamagedIndexError, match=message):
        kernels.count_facet((record,), np.array([9]), np.zeros(2, np.uint8), np.array([begin]), 1, 0)
