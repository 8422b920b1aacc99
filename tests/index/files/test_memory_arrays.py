"""Arrays in memory behave as those in a folder."""

from __future__ import annotations

import numpy as np
import pytest

from tercet.index.files.memory_arrays import MemoryArrays


def test_arrays_are_streamed_made_changed_and_removed() -> None:
    arrays = MemoryArrays()
    stream = arrays.stream("a", np.float16, (2,))
    stream.append(np.array([[1, 2], [3, 4]]))
    stream.append(np.empty((0, 2)))
    stream.append(np.array([[5, 6]]))
    assert (stream.rows, stream.total_bytes) == (3, 12)
    stream.finish()
    found = arrays.open("a", np.float16, (2,), 3)
    assert found.dtype == np.float16
    assert found.tolist() == [[1, 2], [3, 4], [5, 6]]
    arrays.create("b", np.int32, (2,))[0] = 7
    assert arrays.open("b", np.int32).tolist() == [7, 0]
    assert arrays.total_bytes == 12 + 8
    arrays.remove("b")
    with pytest.raises(KeyError):
        arrays.open("b", np.int32)


def test_what_was_given_does_not_change() -> None:
    arrays, given = MemoryArrays(), np.array([1, 2, 3])
    arrays.write("a", given)
    arrays.change("a")[0] = 9
    assert given.tolist() == [1, 2, 3]
    assert arrays.open("a", np.int64).tolist() == [9, 2, 3]


def test_a_stream_without_rows_has_its_type_and_shape() -> None:
    arrays = MemoryArrays()
    arrays.stream("a", np.int8, (4,)).finish()
    found = arrays.open("a", np.int8, (4,))
    assert (found.shape, found.dtype) == ((0, 4), np.int8)


def test_rows_of_another_shape_are_refused() -> None:
    stream = MemoryArrays().stream("a", np.float32, (2,))
    with pytest.raises(ValueError, match=r"rows have shape \(3,\), but the array has \(2,\)"):
        stream.append(np.zeros((1, 3), np.float32))
    stream.close()
