"""What is remembered of conditions, and what is looked at to find their rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyroaring import BitMap

from tercet.index.documents import matching
from tercet.index.documents.bitmaps import bitmap_of_mask, packed_of
from tercet.index.documents.conditions import Condition, condition_of
from tercet.index.documents.field_indexes import FieldIndexes, write_indexes
from tercet.index.documents.fields import Column, KeywordColumn, column_of, field_stems
from tercet.index.documents.filters import parse_filter
from tercet.index.documents.matching import Matching
from tercet.index.documents.metadata import FieldType
from tercet.index.documents.postings import Postings
from tercet.index.documents.row_set import RowSet
from tercet.index.documents.sorted_values import SortedValues
from tercet.index.errors import DamagedIndexError
from tercet.index.files.array_folder import ArrayFolder

FIELDS: dict[str, FieldType] = {"kind": "keyword", "year": "integer"}
DOCUMENTS = 1_000


def columns() -> dict[str, Column]:
    """Half of the documents are of each kind but one; their years are their rows."""
    kinds = [[b"rare"] if row == 700 else [b"odd" if row % 2 else b"even"] for row in range(DOCUMENTS)]
    return {
        "kind": column_of("keyword", kinds),
        "year": column_of("integer", [[row] for row in range(1_000)]),
    }


def condition(filter: Any) -> Condition:
    return condition_of(parse_filter(filter), FIELDS)


@pytest.fixture
def opened() -> Matching:
    return Matching(columns(), FieldIndexes(columns(), DOCUMENTS, {}), DOCUMENTS)


def test_equal_filters_have_one_entry_and_the_same_rows(opened: Matching) -> None:
    one = opened.rows(condition({"and": [{"eq": {"kind": "odd"}}, {"lt": {"year": 10}}]}))
    other = opened.rows(
        condition({"and": [{"lte": {"year": 9.5}}, {"not": {"not": {"in": {"kind": ["odd"]}}}}]})
    )
    assert one is other
    assert one.rows.tolist() == [1, 3, 5, 7, 9]


def test_the_last_conditions_are_remembered_within_bounds(opened: Matching) -> None:
    conditions = [condition({"gte": {"year": year}}) for year in range(100)]
    sets = [opened.rows(each) for each in conditions]
    assert opened._known_bytes <= matching.CACHED_LEAST
    assert opened._known_bytes == sum(each.nbytes + matching.ENTRY_BYTES for each in opened._known.values())
    assert opened.rows(conditions[-1]) is sets[-1]
    assert opened.rows(conditions[0]) is not sets[0]
    assert len(opened.rows(conditions[0])) == len(sets[0]) == DOCUMENTS


def test_the_most_selective_part_goes_first_and_nothing_left_is_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: list[list[int]] = []
    real = Postings.rows
    monkeypatch.setattr(
        Postings,
        "rows",
        lambda self, *places: read.append([each.tolist() for each in places]) or real(self, *places),
    )
    held = columns()
    opened = Matching(held, FieldIndexes(held, DOCUMENTS, {}), DOCUMENTS)
    column = held["kind"]
    assert isinstance(column, KeywordColumn)
    strings = [column.strings[place] for place in range(3)]
    assert strings == [b"even", b"odd", b"rare"]
    both = [{"eq": {"kind": "odd"}}, {"eq": {"kind": "rare"}}, {"eq": {"kind": "even"}}]
    assert len(opened.rows(condition({"and": both}))) == 0
    assert read == [[[2], [3]], [[0], [1]]] or read == [[[2], [3]], [[1], [2]]]  # rare and one other


def test_of_few_rows_the_values_are_compared_and_no_range_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []
    real = SortedValues.taken
    monkeypatch.setattr(SortedValues, "taken", lambda self, *places: taken.append(1) or real(self, *places))
    held = columns()
    opened = Matching(held, FieldIndexes(held, DOCUMENTS, {}), DOCUMENTS)
    some = {"and": [{"in": {"year": list(range(0, 900, 2))}}, {"eq": {"kind": "rare"}}]}
    assert opened.rows(condition(some)).rows.tolist() == [700]
    assert taken == []


def test_segments_without_stored_indexes_answer_alike(tmp_path: Path) -> None:
    held = columns()
    write_indexes(ArrayFolder(tmp_path), held, field_stems(held), DOCUMENTS)
    stored = FieldIndexes.open(ArrayFolder(tmp_path), held, field_stems(held), DOCUMENTS)
    made = FieldIndexes(held, DOCUMENTS, {})
    assert (sorted(stored.stored()), sorted(made.stored())) == (["kind", "year"], [])
    for filter in ({"eq": {"kind": "even"}}, {"gt": {"year": 990}}, {"not": {"eq": {"kind": "rare"}}}):
        rows = [
            Matching(held, each, DOCUMENTS).rows(condition(filter)).rows.tolist() for each in (stored, made)
        ]
        assert rows[0] == rows[1]
    assert all(stored.stored()[name].same(made.stored()[name]) for name in held)


@pytest.mark.parametrize(
    ("name", "place", "value", "problem"),
    [
        ("field_000_few", 0, DOCUMENTS, "names a row or value that is not there"),
        ("field_000_few", 0, -1, "names a row or value that is not there"),
        ("field_000_bitmap_values", (0, 0), 3, "names a row or value that is not there"),
        ("field_000_few_offsets", 0, 1, "does not ascend from 0"),
        ("field_001_order", 0, DOCUMENTS, "names a row outside the 1000 documents"),
    ],
)
def test_damage_is_seen_on_opening(tmp_path: Path, name: str, place: Any, value: int, problem: str) -> None:
    write_indexes(ArrayFolder(tmp_path), columns(), field_stems(columns()), DOCUMENTS)
    array = np.load(tmp_path / f"{name}.npy", mmap_mode="r+")
    array[place] = value
    array.flush()
    with pytest.raises(DamagedIndexError, match=problem):
        FieldIndexes.open(ArrayFolder(tmp_path), columns(), field_stems(columns()), DOCUMENTS)


@pytest.mark.parametrize(("place", "value"), [(0, 0), (4, 200), (-1, 255)])
def test_damage_in_a_bitmap_is_seen_when_it_is_read(tmp_path: Path, place: int, value: int) -> None:
    write_indexes(ArrayFolder(tmp_path), columns(), field_stems(columns()), DOCUMENTS)
    array = np.load(tmp_path / "field_000_bitmaps.npy", mmap_mode="r+")
    array[place] = value
    array.flush()
    indexes = FieldIndexes.open(ArrayFolder(tmp_path), columns(), field_stems(columns()), DOCUMENTS)
    with pytest.raises(DamagedIndexError, match=r"field_000_bitmaps.*restore it or rebuild"):
        Matching(columns(), indexes, DOCUMENTS).rows(condition({"in": {"kind": ["even", "odd"]}}))


@pytest.mark.parametrize("share", [0.0, 0.0001, 0.03, 0.5, 0.999, 1.0])
@pytest.mark.parametrize("documents", [1, 8, 65_536, 65_537, 200_001])
def test_a_set_of_rows_is_the_same_in_every_form(share: float, documents: int) -> None:
    mask = np.random.default_rng(documents).random(documents) < share
    rows, bitmap = np.flatnonzero(mask), bitmap_of_mask(mask)
    assert bitmap == BitMap(rows.tolist())
    assert np.array_equal(packed_of(bitmap, documents), np.packbits(mask, bitorder="little"))
    for made in (RowSet.of(rows, documents), RowSet.of_mask(mask), RowSet.of_bitmap(bitmap, documents)):
        assert len(made) == len(rows)
        assert np.array_equal(made.rows, rows)
        assert np.array_equal(made.mask, mask)
        assert np.array_equal(made.packed, np.packbits(mask, bitorder="little"))
        assert np.array_equal(made.has(np.arange(documents)[::-1]), mask[::-1])
        kept = np.arange(documents) % 3 != 1
        assert np.array_equal(made.also(kept).mask, mask & kept)


def test_a_field_without_values_has_none() -> None:
    empty: dict[str, Column] = {"kind": column_of("keyword", [[]]), "year": column_of("integer", [[]])}
    opened = Matching(empty, FieldIndexes(empty, 1, {}), 1)
    for filter in ({"exists": "kind"}, {"exists": "year"}, {"eq": {"kind": "a"}}, {"in": {"year": [1, 2]}}):
        assert len(opened.rows(condition(filter))) == 0
        assert len(opened.rows(condition({"not": filter}))) == 1
