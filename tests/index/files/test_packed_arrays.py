"""Arrays in one file: read as they were written, by others too, and refused when damaged."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from tercet.index.errors import DamagedIndexError
from tercet.index.files.arrays import Array
from tercet.index.files.packed_arrays import ALIGNMENT, LENGTH_BYTES, PackedArrays, write_packed

ARRAYS: dict[str, Array] = {
    "flags": np.array([True, False, True]),
    "codes": np.arange(-3, 3, dtype=np.int8).reshape(3, 2),
    "bytes": np.frombuffer(b"tea", np.uint8),
    "places": np.array([1, 65_535], np.uint16),
    "dense": np.array([[0.5, -1], [2, 3]], np.float16),
    "ids": np.array([7, 8, 9], np.int32),
    "weights": np.array([0.25], np.float32),
    "offsets": np.array([0, 2, 5]),
    "numbers": np.array([0.1, 1e300]),
    "nothing": np.empty((0, 4), np.float32),
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "arrays.safetensors"
    write_packed(path, ARRAYS)
    return path


def test_arrays_come_back_over_one_mapping(file: Path) -> None:
    packed = PackedArrays(file)
    assert packed.sizes() == {name: array.nbytes for name, array in ARRAYS.items()}
    for name, array in ARRAYS.items():
        for rows in (None, len(array)):
            found = packed.open(name, array.dtype, array.shape[1:], rows)
            np.testing.assert_array_equal(found, array)
            assert found.dtype == array.dtype
            assert type(found) is np.ndarray
            assert found.flags.aligned
            assert not len(array) or not found.flags.writeable
    assert packed.has("codes")
    assert not packed.has("code")


def test_it_is_a_safetensors_file(file: Path, tmp_path: Path) -> None:
    found = load_file(file)
    assert found.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(found[name], array, strict=True)
    length = int.from_bytes(file.read_bytes()[:LENGTH_BYTES], "little")
    assert (LENGTH_BYTES + length) % ALIGNMENT == 0
    save_file(ARRAYS, tmp_path / "theirs")
    theirs = PackedArrays(tmp_path / "theirs")
    assert theirs.open("dense", np.float16, (2,)).tolist() == [[0.5, -1], [2, 3]]


def test_no_arrays_are_a_file_too(tmp_path: Path) -> None:
    write_packed(tmp_path / "a", {})
    assert PackedArrays(tmp_path / "a").sizes() == {}


@pytest.mark.parametrize(
    ("name", "dtype", "row_shape", "rows", "fault"),
    [
        ("none", np.int64, (), None, "none is missing"),
        ("offsets", np.float64, (), None, r"offsets has shape \(3,\) and type int64, not \(3,\) and float64"),
        ("offsets", np.int64, (), 4, r"offsets has shape \(3,\) and type int64, not \(4,\) and int64"),
        ("offsets", np.int64, (1,), None, r"offsets has shape \(3,\) and type int64, not \(3, 1\)"),
        ("dense", np.float16, (4,), None, r"dense has shape \(2, 2\)"),
    ],
)
def test_an_array_of_another_kind_is_refused_by_name(
    file: Path, name: str, dtype: Any, row_shape: tuple[int, ...], rows: int | None, fault: str
) -> None:
    with pytest.raises(DamagedIndexError, match=rf"arrays\.safetensors/{fault}"):
        PackedArrays(file).open(name, dtype, row_shape, rows)


def test_a_truncated_file_is_refused_by_name(file: Path) -> None:
    content = file.read_bytes()
    for size in range(len(content)):
        file.write_bytes(content[:size])
        with pytest.raises(DamagedIndexError, match=r"arrays\.safetensors does not hold packed arrays"):
            PackedArrays(file)
    file.unlink()
    with pytest.raises(DamagedIndexError, match=r"arrays\.safetensors is missing"):
        PackedArrays(file)


def test_a_changed_bit_of_the_header_changes_no_array(file: Path) -> None:
    content = file.read_bytes()
    for position in range(len(content) - sum(PackedArrays(file).sizes().values())):
        damaged = bytearray(content)
        damaged[position] ^= 1 << position % 8
        file.write_bytes(damaged)
        try:
            packed = PackedArrays(file)
            for name, array in ARRAYS.items():
                found = packed.open(name, array.dtype, array.shape[1:])
                np.testing.assert_array_equal(found, array)
        except DamagedIndexError as error:
            assert "arrays.safetensors" in str(error)  # noqa: PT017 - either is right


@pytest.mark.parametrize(
    "change",
    [
        {"dtype": "F8"},
        {"dtype": ["I64"]},
        {"dtype": "I32"},
        {"shape": [-3]},
        {"shape": 3},
        {"shape": [3.0]},
        {"shape": [2**62, 2**62]},
        {"data_offsets": [0]},
        {"data_offsets": ["0", "24"]},
        {"data_offsets": [24, 0]},
        {"data_offsets": [8, 32]},
        {"data_offsets": None},
        {"shape": [1, 1, 1, 1, 3]},
        {"shape": [2**48, 0], "data_offsets": [0, 0]},
    ],
    ids=str,
)
def test_an_impossible_header_is_refused(file: Path, change: dict[str, Any]) -> None:
    require_refused(file, "offsets", change)


def test_an_array_without_an_axis_is_refused(file: Path) -> None:
    require_refused(file, "weights", {"shape": []})


def require_refused(file: Path, name: str, change: dict[str, Any]) -> None:
    content = file.read_bytes()
    start = LENGTH_BYTES + int.from_bytes(content[:LENGTH_BYTES], "little")
    header = json.loads(content[LENGTH_BYTES:start])
    header[name].update(change)
    rewrite(file, json.dumps(header).encode(), content[start:])
    with pytest.raises(DamagedIndexError, match=r"arrays\.safetensors does not hold packed arrays"):
        PackedArrays(file)


@pytest.mark.parametrize("text", [b"", b"[]", b"3", b"null", b'{"a": 1}', b"{" * 100_000, b"\xff"])
def test_another_header_is_refused(file: Path, text: bytes) -> None:
    rewrite(file, text, b"")
    with pytest.raises(DamagedIndexError, match=r"arrays\.safetensors does not hold packed arrays"):
        PackedArrays(file)


def test_a_header_with_a_blank_more_is_refused(file: Path) -> None:
    """Values would lie where kernels do not take them."""
    content = file.read_bytes()
    start = LENGTH_BYTES + int.from_bytes(content[:LENGTH_BYTES], "little")
    rewrite(file, content[LENGTH_BYTES:start] + b" ", content[start:])
    with pytest.raises(DamagedIndexError, match=f"begin at byte {start + 1}, which is no multiple of 8"):
        PackedArrays(file)


def test_values_that_are_not_aligned_to_their_type_are_refused(tmp_path: Path) -> None:
    described = {"flag": ("BOOL", [1], [0, 1]), "number": ("F64", [1], [1, 9])}
    keys = ("dtype", "shape", "data_offsets")
    text = json.dumps({name: dict(zip(keys, values, strict=True)) for name, values in described.items()})
    file = tmp_path / "arrays.safetensors"
    rewrite(file, text.encode().ljust(ALIGNMENT * 3 - LENGTH_BYTES), bytes(9))
    with pytest.raises(DamagedIndexError, match="does not hold packed arrays"):
        PackedArrays(file)


def test_a_pipe_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "arrays.safetensors")
    with pytest.raises(DamagedIndexError, match=r"arrays\.safetensors is no file"):
        PackedArrays(tmp_path / "arrays.safetensors")


def rewrite(file: Path, text: bytes, values: bytes) -> None:
    file.write_bytes(len(text).to_bytes(LENGTH_BYTES, "little") + text + values)
