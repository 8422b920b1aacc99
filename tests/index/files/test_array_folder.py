"""Arrays in a folder: streamed, mapped, and refused when damaged."""

from __future__ import annotations

import ast
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tercet.index.errors import DamagedIndexError
from tercet.index.files.array_folder import ArrayFolder
from tercet.index.files.npy import HEADER_BYTES


@pytest.fixture
def arrays(tmp_path: Path) -> ArrayFolder:
    return ArrayFolder(tmp_path)


@pytest.mark.parametrize("row_shape", [(), (3,)])
@pytest.mark.parametrize("dtype", [np.float16, np.int8, np.uint8, np.int64, np.bool_])
def test_streamed_arrays_are_plain_npy_files(
    arrays: ArrayFolder, dtype: Any, row_shape: tuple[int, ...]
) -> None:
    whole = np.arange(7 * int(np.prod(row_shape))).reshape(7, *row_shape).astype(dtype)
    stream = arrays.stream("a", dtype, row_shape)
    stream.append(whole[:3])
    stream.append(whole[3:3])
    stream.append(whole[3:])
    stream.finish()
    assert stream.rows == 7
    assert stream.total_bytes == whole.nbytes
    np.testing.assert_array_equal(np.load(arrays.path("a"), allow_pickle=False), whole)
    for rows in (7, None):
        mapped = arrays.open("a", dtype, row_shape, rows)
        np.testing.assert_array_equal(mapped, whole)
        assert not mapped.flags.writeable
        assert type(mapped) is np.ndarray


def test_arrays_are_made_changed_and_removed(arrays: ArrayFolder) -> None:
    arrays.create("b", np.int32, (3,))[:] = [1, 2, 3]
    arrays.write("a", np.array([[0.5]], np.float16))
    arrays.change("b")[1] = 7
    assert arrays.open("b", np.int32).tolist() == [1, 7, 3]
    assert arrays.names() == ["a", "b"]
    arrays.remove("b")
    assert arrays.names() == ["a"]


def test_the_space_of_an_array_is_taken_when_it_is_made(arrays: ArrayFolder) -> None:
    """So that a full disk is an error then, and not a signal that kills whoever writes to mapped memory."""
    array = arrays.create("b", np.uint8, (3_000_000,))
    taken = arrays.path("b").stat()
    assert taken.st_size == HEADER_BYTES + array.nbytes
    assert taken.st_blocks * 512 >= taken.st_size  # of a file with holes it would be a page or two


def test_an_array_without_rows_opens(arrays: ArrayFolder) -> None:
    arrays.write("a", np.empty((0, 4), np.float16))
    assert arrays.open("a", np.float16, (4,), 0).shape == (0, 4)
    assert np.load(arrays.path("a")).shape == (0, 4)


def test_rows_of_another_shape_are_refused(arrays: ArrayFolder) -> None:
    stream = arrays.stream("a", np.float32, (2,))
    with pytest.raises(ValueError, match=r"rows have shape \(3,\), but the file holds \(2,\)"):
        stream.append(np.zeros((1, 3), np.float32))
    stream.close()


def test_an_unfinished_array_cannot_be_opened(arrays: ArrayFolder) -> None:
    stream = arrays.stream("a", np.int64)
    stream.append(np.arange(4))
    stream.close()
    with pytest.raises(DamagedIndexError, match=r"a\.npy"):
        arrays.open("a", np.int64)


@pytest.mark.parametrize("size", [0, 1, HEADER_BYTES - 1, HEADER_BYTES, HEADER_BYTES + 1, HEADER_BYTES + 31])
@pytest.mark.parametrize("rows", [4, None])
def test_a_truncated_array_is_refused_by_name(arrays: ArrayFolder, size: int, rows: int | None) -> None:
    arrays.write("a", np.arange(4))
    os.truncate(arrays.path("a"), size)
    with pytest.raises(DamagedIndexError, match=r"a\.npy"):
        arrays.open("a", np.int64, rows=rows)


@pytest.mark.parametrize("position", range(0, HEADER_BYTES, 7))
def test_a_changed_header_is_refused(arrays: ArrayFolder, position: int) -> None:
    arrays.write("a", np.arange(4))
    content = bytearray(arrays.path("a").read_bytes())
    content[position] ^= 1
    arrays.path("a").write_bytes(content)
    with pytest.raises(DamagedIndexError, match=r"a\.npy is not an array of shape \(4,\) and type int64"):
        arrays.open("a", np.int64, rows=4)


def test_a_missing_array_is_named(arrays: ArrayFolder) -> None:
    with pytest.raises(DamagedIndexError, match=r"b\.npy is missing"):
        arrays.open("b", np.int64)


def test_threads_read_headers_without_python_s_parser(
    arrays: ArrayFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`numpy.load` calls it, and in Python 3.11 it may fail where another thread is in it, too."""

    def parse(*_: object) -> None:
        raise SystemError("AST constructor recursion depth mismatch")

    monkeypatch.setattr(ast, "parse", parse)
    monkeypatch.setattr(ast, "literal_eval", parse)
    arrays.create("b", np.float16, (2, 3))[1, 2] = 0.5
    arrays.change("b")[0, 0] = 7
    assert arrays.written("b").tolist() == [[7, 0, 0], [0, 0, 0.5]]
    assert arrays.written("b").dtype == np.float16
    arrays.write("c", np.array([True, False]))
    assert arrays.written("c").tolist() == [True, False]


@pytest.mark.parametrize("header", [b"", b"\x93NUMPY", b"x" * HEADER_BYTES])
def test_what_was_not_written_here_is_refused(arrays: ArrayFolder, header: bytes) -> None:
    arrays.path("a").write_bytes(header)
    for read in (arrays.written, arrays.change):
        with pytest.raises(DamagedIndexError, match=r"a\.npy is not an array of this index"):
            read("a")
