"""Atomic replacement, and arrays that are streamed, mapped, and refused when damaged."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from index.errors import DamagedIndexError
from index.files.storage import (
    HEADER_BYTES,
    ArrayWriter,
    open_array,
    read_json_object,
    sha256_of,
    write_array,
    write_atomically,
    write_json_atomically,
)


def test_replacing_a_file_leaves_no_temporary_one(tmp_path: Path) -> None:
    path = tmp_path / "CURRENT"
    write_atomically(path, [b"one"])
    write_atomically(path, [b"two"])
    assert path.read_bytes() == b"two"
    assert list(tmp_path.iterdir()) == [path]


def test_a_failed_replacement_keeps_the_former_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "CURRENT"
    write_atomically(path, [b"one"])

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_atomically(path, [b"two"])
    assert path.read_bytes() == b"one"
    assert list(tmp_path.iterdir()) == [path]


def test_json_objects_round_trip_and_others_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    write_json_atomically(path, {"name": "시", "count": 1})
    assert read_json_object(path) == {"name": "시", "count": 1}
    for content in (b"", b"{", b"[]", b"\xff", b"[" * 100_000):
        path.write_bytes(content)
        with pytest.raises(DamagedIndexError, match=r"record\.json"):
            read_json_object(path)


def test_checksum_is_sha256(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"tercet")
    assert sha256_of(path) == hashlib.sha256(b"tercet").hexdigest()


@pytest.mark.parametrize("row_shape", [(), (3,)])
@pytest.mark.parametrize("dtype", [np.float16, np.int8, np.uint8, np.int64, np.bool_])
def test_streamed_arrays_are_plain_npy_files(tmp_path: Path, dtype: Any, row_shape: tuple[int, ...]) -> None:
    whole = np.arange(7 * int(np.prod(row_shape))).reshape(7, *row_shape).astype(dtype)
    writer = ArrayWriter(tmp_path / "a.npy", dtype, row_shape)
    writer.append(whole[:3])
    writer.append(whole[3:3])
    writer.append(whole[3:])
    writer.finish()
    assert writer.rows == 7
    assert writer.total_bytes == whole.nbytes
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy", allow_pickle=False), whole)
    for rows in (7, None):
        mapped = open_array(tmp_path / "a.npy", dtype, row_shape, rows)
        np.testing.assert_array_equal(mapped, whole)
        assert not mapped.flags.writeable
        assert type(mapped) is np.ndarray


def test_an_array_without_rows_opens(tmp_path: Path) -> None:
    write_array(tmp_path / "a.npy", np.empty((0, 4), np.float16))
    assert open_array(tmp_path / "a.npy", np.float16, (4,), 0).shape == (0, 4)
    assert np.load(tmp_path / "a.npy").shape == (0, 4)


def test_rows_of_another_shape_are_refused(tmp_path: Path) -> None:
    writer = ArrayWriter(tmp_path / "a.npy", np.float32, (2,))
    with pytest.raises(ValueError, match=r"rows have shape \(3,\), but the file holds \(2,\)"):
        writer.append(np.zeros((1, 3), np.float32))
    writer.close()


def test_an_unfinished_array_cannot_be_opened(tmp_path: Path) -> None:
    writer = ArrayWriter(tmp_path / "a.npy", np.int64)
    writer.append(np.arange(4))
    writer.close()
    with pytest.raises(DamagedIndexError, match=r"a\.npy"):
        open_array(tmp_path / "a.npy", np.int64)


@pytest.mark.parametrize("size", [0, 1, HEADER_BYTES - 1, HEADER_BYTES, HEADER_BYTES + 1, HEADER_BYTES + 31])
@pytest.mark.parametrize("rows", [4, None])
def test_a_truncated_array_is_refused_by_name(tmp_path: Path, size: int, rows: int | None) -> None:
    path = tmp_path / "a.npy"
    write_array(path, np.arange(4))
    os.truncate(path, size)
    with pytest.raises(DamagedIndexError, match=r"a\.npy"):
        open_array(path, np.int64, rows=rows)


@pytest.mark.parametrize("position", range(0, HEADER_BYTES, 7))
def test_a_changed_header_is_refused(tmp_path: Path, position: int) -> None:
    path = tmp_path / "a.npy"
    write_array(path, np.arange(4))
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)
    with pytest.raises(DamagedIndexError, match=r"a\.npy is not an array of shape \(4,\) and type int64"):
        open_array(path, np.int64, rows=4)


def test_a_missing_array_is_named(tmp_path: Path) -> None:
    with pytest.raises(DamagedIndexError, match=r"b\.npy is missing"):
        open_array(tmp_path / "b.npy", np.int64)
