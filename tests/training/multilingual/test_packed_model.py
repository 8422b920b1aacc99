"""The packed file against one written by hand, and damaged ones."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from tercet.training.errors import BaseWeightsError
from tercet.training.multilingual.packed_model import Architecture, read_packed_model

PIECES = ["<s>", "<pad>", "</s>", "<unk>", "▁달", "▁moon", "<mask>"]
SCORES = [0.0, 0.0, 0.0, 0.0, -1.5, -2.25, 0.0]


def block(scale: float, numbers: list[int]) -> bytes:
    """32 numbers of -8 to 7, value j beside value j + 16."""
    halves = [low + 8 | (high + 8) << 4 for low, high in zip(numbers[:16], numbers[16:], strict=True)]
    return np.float16(scale).tobytes() + bytes(halves)


def packed(
    tensors: dict[str, tuple[int, int, bytes]], sizes: tuple[int, ...] = (32, 1, 4, 64, 9, 16, 2)
) -> bytes:
    """A file with these tensors: kind, values and bytes of each."""
    text = [piece.encode() for piece in PIECES]
    bounds = np.cumsum([0, *map(len, text)]).astype("<u4").tobytes()
    head = b"E5S1" + struct.pack("<i7ifi", 1, *sizes, 1e-12, 32)
    head += struct.pack("<5iQ", len(PIECES), 0, 2, 1, 3, sum(map(len, text)))
    head += bounds + np.array(SCORES, "<f4").tobytes() + b"".join(text)
    head += struct.pack("<iI", 1, 9) + bytes(9) + struct.pack("<i", len(tensors))
    entries = sum(2 + len(name) + 1 + 4 + 8 + 8 for name in tensors)
    start, directory, data = len(head) + entries, b"", b""
    for name, (kind, count, values) in tensors.items():
        place = start + len(data)
        directory += struct.pack("<H", len(name)) + name.encode()
        directory += struct.pack("<BIQQ", kind, count, place, len(values))
        data += values
    return head + directory + data


@pytest.fixture
def numbers() -> list[int]:
    return [*range(-8, 8), *range(7, -9, -1)]


def test_everything_is_read(tmp_path: Path, numbers: list[int]) -> None:
    bias = np.array([1.5, -2.0], "<f4")
    path = tmp_path / "model.bin"
    path.write_bytes(
        packed({"a.w": (1, 64, block(0.5, numbers) + block(-2, numbers)), "a.b": (0, 2, bias.tobytes())})
    )
    model = read_packed_model(path)
    assert model.architecture == Architecture(32, 1, 4, 64, 9, 16, 2, pytest.approx(1e-12))
    assert list(model.pieces) == PIECES
    assert list(model.scores) == SCORES
    expected = np.concatenate([np.array(numbers) * 0.5, np.array(numbers) * -2.0])
    np.testing.assert_array_equal(model.tensors["a.w"], expected)
    np.testing.assert_array_equal(model.tensors["a.b"], bias)


@pytest.mark.parametrize(
    ("damage", "named"),
    [
        (lambda data: b"GGUF" + data[4:], "does not begin with E5S1"),
        (lambda data: data[:4] + struct.pack("<i", 2) + data[8:], "version 1"),
        (lambda data: data[:40] + struct.pack("<i", 64) + data[44:], "blocks have not 32 values"),
        (lambda data: data[:60], ""),
        (lambda data: data[:-4], "buffer size"),
        (lambda data: data[:-18], "0 values instead of 32"),
        (lambda data: b"", ""),
    ],
)
def test_what_is_damaged_is_named(tmp_path: Path, numbers: list[int], damage: object, named: str) -> None:
    path = tmp_path / "model.bin"
    path.write_bytes(damage(packed({"a.w": (1, 32, block(1, numbers))})))  # type: ignore[operator]  # a function
    with pytest.raises(BaseWeightsError, match=f"model.bin: cannot be read as a packed E5 model: .*{named}"):
        read_packed_model(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(BaseWeightsError, match=r"none\.bin"):
        read_packed_model(tmp_path / "none.bin")
