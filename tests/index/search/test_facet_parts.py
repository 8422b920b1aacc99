"""Facets of parts are those of all documents, or say what may be missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tercet.index.candidates import Document, Facet, FacetValue
from tercet.index.files.packed_bytes import PackedBytes
from tercet.index.search import facet_parts
from tercet.index.search.facet_parts import (
    EVERY_VALUE,
    MOST_HASHES,
    NO_NAMES,
    FieldCounts,
    MergedValues,
    WantedValues,
)

FIELDS = {"tags": "keyword", "new": "boolean"}


def part_of(counts: Counter[str], wanted: WantedValues) -> FieldCounts:
    """What a part with these counts tells: the specification in Python."""
    ordered = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    sent = [each for each in ordered[: wanted.most] if each[1] >= wanted.least]
    named = [name.decode() for name in wanted.named.take(np.arange(len(wanted.named)))]
    told = dict(sent) | {name: counts[name] for name in named}
    hashes = PackedBytes.of([value.encode() for value in counts]).hashes
    return FieldCounts(
        PackedBytes.of([value.encode() for value in told]),
        np.array(list(told.values()), np.int64),
        ordered[len(sent)][1] if len(sent) < len(ordered) else 0,
        0,
        np.sort(hashes)[:MOST_HASHES],
    )


def merged(parts: Sequence[Counter[str]], limit: int, first: int) -> tuple[Facet, int]:
    """The facet of parts that tell so many values at first, and how many rounds it took."""
    known = [part_of(part, WantedValues("tags", first, 1, NO_NAMES)) for part in parts]
    for rounds in (1, 2, 3):
        values = MergedValues(known, limit)
        following = values.following("tags", more=rounds == 1)
        if rounds == 3 or not any(following):
            break
        known = [
            before if wanted is None else before.with_more(wanted, part_of(part, wanted))
            for part, wanted, before in zip(parts, following, known, strict=True)
        ]
    return values.facet(boolean=False), rounds


def test_by_hand() -> None:
    """Each part tells two values. What it leaves out has 1 at most, so no other has more than 2 in all."""
    one, two = Counter(tea=9, train=5, steam=1), Counter(tea=7, leaf=4, train=1)
    facet, rounds = merged([one, two], 2, first=2)
    assert facet.values == [FacetValue("tea", 16), FacetValue("train", 6)]  # 5 and perhaps 1: asked by name
    assert (facet.distinct, facet.unlisted, rounds) == (4, None, 2)


def test_a_value_that_no_part_has_among_its_first_is_found() -> None:
    """ "tea" is second everywhere, and first of all."""
    parts = [Counter({f"only{part}": 10, "tea": 9}) for part in range(3)]
    facet, rounds = merged(parts, 1, first=1)
    assert (facet.values, facet.unlisted, rounds) == ([FacetValue("tea", 27)], None, 2)


def test_what_cannot_be_compared_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facet_parts, "MORE_VALUES", 3)
    parts = [Counter({f"{part}{value}": 2 for value in range(50)}) for part in range(2)]
    facet, _ = merged(parts, 2, first=2)
    assert [each.count for each in facet.values] == [2, 2]
    assert facet.unlisted == 4  # a value that both leave out could have 2 in each


@settings(max_examples=150, deadline=None)
@given(
    parts=st.lists(
        st.lists(st.sampled_from("abcdefghijkl"), max_size=60).map(Counter), min_size=1, max_size=4
    ),
    limit=st.integers(1, 6),
    first=st.integers(1, 4),
)
def test_the_commonest_are_those_of_all(parts: list[Counter[str]], limit: int, first: int) -> None:
    facet, _ = merged(parts, limit, max(first, 1))
    together: Counter[str] = sum(parts, Counter())
    expected = sorted(together.items(), key=lambda each: (-each[1], each[0]))[:limit]
    assert [(each.value, each.count) for each in facet.values] == expected
    assert (facet.distinct, facet.unlisted) == (len(together), None)


def test_parts_of_a_collection_tell_what_is_wanted(build: Any, random_corpus: Any) -> None:
    documents, encoded = random_corpus(60, 1)
    documents = [
        Document(each.id, each.text, None, {"tags": [f"t{row % 7}", f"u{row}"], "new": row % 3 == 0})
        for row, each in enumerate(documents)
    ]
    snapshot = build((documents, encoded), segment=13, fields=FIELDS).snapshot()
    counts = Counter(tag for each in documents for tag in each.metadata["tags"])
    for wanted in (
        WantedValues("tags", 3, 1, PackedBytes.of([b"nothing", b"t0", b"u5"])),
        WantedValues("tags", 100, 2, NO_NAMES),
        WantedValues("tags", 0, 1, PackedBytes.of([b"t6"])),
        WantedValues("tags", EVERY_VALUE, 1, NO_NAMES),
    ):
        (found,) = snapshot.field_counts([wanted])
        expected = part_of(counts, wanted)
        assert found.values.take(np.arange(len(found.values))) == expected.values.take(
            np.arange(len(expected.values))
        )
        assert found.counts.tolist() == expected.counts.tolist()
        assert (found.rest, found.missing) == (expected.rest, 0)
        assert found.hashes.tolist() == expected.hashes.tolist()
    facet = MergedValues(snapshot.field_counts([WantedValues("new", 9, 1, NO_NAMES)]), 2).facet(boolean=True)
    assert facet == Facet([FacetValue(False, 40), FacetValue(True, 20)], 2, 0)


def test_many_distinct_values_are_estimated() -> None:
    parts = [Counter({f"{value}": 1 for value in range(part * 5000, 30_000)}) for part in range(3)]
    facet, _ = merged(parts, 2, first=100)
    assert facet.distinct == pytest.approx(30_000, rel=0.05)
