"""The filter of ids: it never denies one that is there, and passes few others."""

import numpy as np
import pytest

from tercet.index.documents.id_filter import IdFilter
from tercet.index.files.packed_bytes import PackedBytes


@pytest.mark.parametrize("pattern", ["{}", "d{:08d}", "https://example.com/articles/{}.html", "문서-{}"])
def test_ids_that_are_there_pass_and_few_others(pattern: str) -> None:
    there, others = (
        PackedBytes.of([pattern.format(number).encode() for number in range(first, first + 5_000)])
        for first in (0, 10_000)
    )
    some = IdFilter(there)
    assert some.passing(there).tolist() == list(range(5_000))
    assert len(some.passing(others)) < 5_000 / 40


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_few_ids(count: int) -> None:
    ids = PackedBytes.of([b"a", b"b", b"c"])
    passing = IdFilter(ids.gather(np.arange(count))).passing(ids)
    assert passing.tolist() == list(range(count))
