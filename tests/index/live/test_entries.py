"""What the ledger holds comes back to the last bit, or is refused."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from tercet.index.documents.fields import ScalarColumn
from tercet.index.errors import DamagedIndexError
from tercet.index.files.packed_bytes import PackedBytes
from tercet.index.live.entries import decode_ids, decode_rows, encode_ids, encode_rows, with_stored_fields

KINDS: list[dict[str, Any]] = [
    {},
    {"windows": True},
    {"bm25": True, "lexical": "idf"},
    {"token_codec": "float16"},
    {"token_codec": "none"},
]


def same(left: Any, right: Any) -> bool:
    """Whether two records hold equal arrays of equal types."""
    if dataclasses.is_dataclass(left):
        compared = [f.name for f in dataclasses.fields(left) if f.compare]  # addresses of arrays are not
        return all(same(getattr(left, name), getattr(right, name)) for name in compared)
    if isinstance(left, PackedBytes):
        return [left[place] for place in range(len(left))] == [right[place] for place in range(len(right))]
    if isinstance(left, np.ndarray):
        return left.dtype == right.dtype and np.array_equal(left, right)
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    return bool(left == right)


@pytest.mark.parametrize("changes", KINDS, ids=str)
def test_rows_come_back(live_settings: Any, make_rows: Any, changes: dict[str, Any]) -> None:
    settings = live_settings(**changes)
    rows = make_rows(settings, ["b", "a/é", "c"], 3)
    for some in (rows, rows.span(1, 2)):
        assert same(with_stored_fields(decode_rows(encode_rows(some), settings), settings), some)


def test_a_number_that_was_rounded_before_it_was_refused_comes_back(
    live_settings: Any, make_rows: Any
) -> None:
    settings = dataclasses.replace(live_settings(), fields={"size": "number"})
    rows = make_rows(live_settings(), ["a"], 1)
    content = b'{"text":"x","title":null,"metadata":{"size":9007199254740993}}'
    written = dataclasses.replace(rows, contents=PackedBytes.of([content]))
    found = with_stored_fields(decode_rows(encode_rows(written), settings), settings).columns["size"]
    assert isinstance(found, ScalarColumn)
    assert found.values.tolist() == [9007199254740992.0]


def test_ids_come_back(live_settings: Any) -> None:
    ids = PackedBytes.of([b"b", "시".encode()])
    assert decode_ids(encode_ids(ids), live_settings()).take(np.arange(2)) == [b"b", "시".encode()]


@pytest.mark.parametrize("payload", [b"", b"tercet", bytes(64)])
def test_other_bytes_are_damage(live_settings: Any, payload: bytes) -> None:
    for decode in (decode_rows, decode_ids):
        with pytest.raises(DamagedIndexError, match="ledger of collection 'demo'"):
            decode(payload, live_settings())


def test_documents_of_another_kind_are_damage(live_settings: Any, make_rows: Any) -> None:
    plain, windowed = live_settings(), live_settings(windows=True)
    with pytest.raises(DamagedIndexError, match="window_offsets"):
        decode_rows(encode_rows(make_rows(plain, ["a"], 1)), windowed)
    with pytest.raises(DamagedIndexError, match="is not documents"):
        decode_rows(encode_ids(PackedBytes.of([b"a"])), plain)
