"""The columns that the declared fields of a segment become."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tercet.index.documents.fields import KeywordColumn, ScalarColumn, field_stems, open_columns
from tercet.index.documents.fields_writer import FieldsWriter
from tercet.index.documents.metadata import FieldType
from tercet.index.errors import DamagedIndexError
from tercet.index.files.array_folder import ArrayFolder


def test_columns_hold_every_document_in_order(tmp_path: Path, make_columns: Any) -> None:
    fields: dict[str, FieldType] = {"tags": "keyword", "year": "integer", "price": "number", "new": "boolean"}
    writer = FieldsWriter(ArrayFolder(tmp_path), fields, field_stems(fields))
    first = {"tags": [b"red", b"blue"], "year": [2020], "price": [1.5], "new": [True]}
    last = {"tags": [b"blue"], "year": [-3], "price": [0.0], "new": [False]}
    writer.append(make_columns(fields, [first, {}]), 2)
    writer.append(make_columns(fields, [last]), 1)
    writer.finish()
    columns = open_columns(ArrayFolder(tmp_path), fields, field_stems(fields), 3)
    tags, year, price, new = (columns[name] for name in ("tags", "year", "price", "new"))
    assert isinstance(tags, KeywordColumn)
    assert [tags.strings[place] for place in range(len(tags.strings))] == [b"blue", b"red"]
    assert tags.codes.tolist() == [1, 0, 0]
    assert tags.rows.tolist() == [0, 0, 2]
    assert isinstance(year, ScalarColumn)
    assert (year.values.tolist(), year.present.tolist()) == ([2020, 0, -3], [True, False, True])
    assert isinstance(price, ScalarColumn)
    assert (price.values.tolist(), price.present.tolist()) == ([1.5, 0.0, 0.0], [True, False, True])
    assert isinstance(new, ScalarColumn)
    assert (new.values.tolist(), new.present.tolist()) == ([True, False, False], [True, False, True])


def test_further_values_are_streamed_where_there_are_some(tmp_path: Path, make_columns: Any) -> None:
    fields: dict[str, FieldType] = {"year": "integer", "price": "number"}
    writer = FieldsWriter(ArrayFolder(tmp_path), fields, field_stems(sorted(fields)))
    writer.append(make_columns(fields, [{"year": [5]}, {"price": [0.5]}]), 2)
    assert writer.total_bytes == 2 * 2 * (8 + 1)
    writer.append(make_columns(fields, [{"year": [7, 6, 7]}, {}, {"year": [1, 2]}]), 3)
    writer.append(make_columns(fields, [{"year": [3]}]), 1)
    assert writer.total_bytes == 2 * 6 * (8 + 1) + 3 * (8 + 8)
    writer.finish()
    columns = open_columns(ArrayFolder(tmp_path), fields, field_stems(sorted(fields)), 6)
    year, price = columns["year"], columns["price"]
    assert isinstance(year, ScalarColumn)
    assert year.further is not None
    assert year.values.tolist() == [5, 0, 7, 0, 1, 3]
    assert (year.further.values.tolist(), year.further.rows.tolist()) == ([6, 7, 2], [2, 2, 4])
    assert isinstance(price, ScalarColumn)
    assert price.further is None
    assert not (tmp_path / "field_000_further.npy").exists()  # of price, the first by name
    some = year.take(np.array([4, 2, 0]))
    assert some.further is not None
    assert (some.further.values.tolist(), some.further.rows.tolist()) == ([2, 6, 7], [0, 1, 1])
    assert year.take(np.array([5, 0])).further is None
    rows = np.load(tmp_path / "field_001_further_rows.npy", mmap_mode="r+")
    rows[0] = 6
    rows.flush()
    with pytest.raises(DamagedIndexError, match=r"field_001_further_rows.npy names a row outside the 6"):
        open_columns(ArrayFolder(tmp_path), fields, field_stems(sorted(fields)), 6)


def test_a_segment_without_values_has_empty_columns(tmp_path: Path, make_columns: Any) -> None:
    fields: dict[str, FieldType] = {"tags": "keyword", "year": "integer"}
    writer = FieldsWriter(ArrayFolder(tmp_path), fields, field_stems(fields))
    writer.append(make_columns(fields, [{}]), 1)
    writer.finish()
    tags = open_columns(ArrayFolder(tmp_path), fields, field_stems(fields), 1)["tags"]
    assert isinstance(tags, KeywordColumn)
    assert (len(tags.strings), len(tags.codes)) == (0, 0)


def test_memory_holds_each_distinct_string_once(tmp_path: Path, make_columns: Any) -> None:
    fields: dict[str, FieldType] = {"tags": "keyword", "year": "integer"}
    writer = FieldsWriter(ArrayFolder(tmp_path), fields, field_stems(fields))
    writer.append(make_columns(fields, [{"tags": [b"red", b"blue"], "year": [1]}]), 1)
    held = writer.buffered_bytes
    assert held > len(b"redblue")
    writer.append(make_columns(fields, [{"tags": [b"red", b"blue"], "year": [2]}] * 100), 100)
    assert writer.buffered_bytes == held
    assert writer.total_bytes == 2 * 101 * (4 + 8) + 101 * (8 + 1)
    writer.close()


def test_a_segment_without_the_columns_of_a_field_is_damage(tmp_path: Path) -> None:
    with pytest.raises(DamagedIndexError, match="has no columns of field 'b'"):
        open_columns(ArrayFolder(tmp_path), {"b": "integer"}, field_stems([None, "a"]), 3)
    assert field_stems([None, "a"], 4) == {"a": "field_005"}
