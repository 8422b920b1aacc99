"""Nodes and weights of an ONNX file, without the library that writes it.

Serving on a CPU has no `onnx`, whose only use there would be this. The file is a protobuf message
(https://protobuf.dev/programming-guides/encoding/, https://github.com/onnx/onnx/blob/main/onnx/onnx.proto);
what is not asked for is skipped. Weights are views of the mapped file, wherever they lie in it.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tercet.models.errors import CheckpointError

Array = npt.NDArray[Any]
Attribute = int | float | bytes
Beside = Callable[[str], memoryview]
"""The content of a file beside the graph's, by its name. Each is mapped once, however many weights it has."""

# By the numbers of TensorProto.DataType.
TYPES = {1: np.float32, 2: np.uint8, 3: np.int8, 6: np.int32, 7: np.int64, 10: np.float16}
VARINT, EIGHT_BYTES, LENGTH, FOUR_BYTES = 0, 1, 2, 5
VARINT_BYTES = 10  # of 64 bits
MAX_BRANCHES = 32  # one in another
# What bytes of any kind may lead to: a number where text should be, a shape beyond memory, a link to itself.
BROKEN = (OSError, ValueError, LookupError, TypeError, OverflowError, RuntimeError, struct.error)


@dataclass(frozen=True, slots=True)
class Node:
    """One operation. attributes: those that are a number or text."""

    kind: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: dict[str, Attribute]


@dataclass(frozen=True, slots=True)
class OnnxFile:
    """A graph: its nodes in order, those of branches after the one that chooses them, and its weights, which
    are views of the mapped files.
    """

    nodes: list[Node]
    weights: dict[str, Array]
    maps: list[mmap.mmap]

    def release(self) -> None:
        """Takes no memory any more for what was read of the files; what is used again is read again."""
        for mapped in self.maps:
            mapped.madvise(mmap.MADV_DONTNEED)


def read_onnx(path: Path) -> OnnxFile:
    """Reads a file and the data beside it. Raises CheckpointError where it is not such a file."""
    onnx_file = OnnxFile([], {}, [])

    @cache
    def mapped(name: str) -> memoryview:
        beside = path.with_name(name)
        # As files of Hugging Face's cache: links to one folder. Any others would show files of this machine.
        if beside.resolve().parent not in (path.parent.resolve(), path.resolve().parent):
            raise ValueError(f"{name} is a link to a file elsewhere")
        if beside.exists() and not beside.is_file():  # to open a pipe would wait for its other end
            raise ValueError(f"{name} is no file")
        with beside.open("rb") as file:
            onnx_file.maps.append(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        return memoryview(onnx_file.maps[-1])

    try:
        (graph,) = (value for number, value in _fields(mapped(path.name)) if number == 7)
        _read_graph(graph, mapped, onnx_file, 0)
    except BROKEN as error:
        raise CheckpointError(f"{path} cannot be read as an ONNX file: {error}") from error
    return onnx_file


def _varint(data: memoryview, offset: int) -> tuple[int, int]:
    """A number and where it ends."""
    value = 0
    for position in range(VARINT_BYTES):
        byte = data[offset + position]
        value |= (byte & 0x7F) << 7 * position
        if byte < 0x80:
            return value, offset + position + 1
    raise ValueError("a number of more than 64 bits")


def _fields(data: memoryview) -> Iterator[tuple[int, Any]]:
    """The number and the value of each field: an integer, or the bytes of what has a length or is a float."""
    offset = 0
    while offset < len(data):
        key, offset = _varint(data, offset)
        kind = key & 7
        if kind == VARINT:
            value, offset = _varint(data, offset)
            yield key >> 3, value
            continue
        if kind == LENGTH:
            size, offset = _varint(data, offset)
        elif kind in (EIGHT_BYTES, FOUR_BYTES):
            size = 8 if kind == EIGHT_BYTES else 4
        else:
            raise ValueError(f"a field of kind {kind}")
        if offset + size > len(data):
            raise ValueError("it ends too early")
        yield key >> 3, data[offset : offset + size]
        offset += size


def _text(value: memoryview) -> str:
    return str(value, "utf-8")


def _read_graph(data: memoryview, beside: Beside, onnx_file: OnnxFile, depth: int) -> None:
    if depth > MAX_BRANCHES:
        raise ValueError(f"more than {MAX_BRANCHES} branches one in another")
    for number, value in _fields(data):
        if number == 1:
            _read_node(value, beside, onnx_file, depth)
        elif number == 5:
            name, array = _tensor(value, beside)
            onnx_file.weights[name] = array


def _read_node(data: memoryview, beside: Beside, onnx_file: OnnxFile, depth: int) -> None:
    inputs, outputs, attributes = [], [], {}
    kind, branches = "", []
    for number, value in _fields(data):
        if number == 1:
            inputs.append(_text(value))
        elif number == 2:
            outputs.append(_text(value))
        elif number == 4:
            kind = _text(value)
        elif number == 5:
            fields = dict(_fields(value))
            name = _text(fields[1])
            if 2 in fields:
                (attributes[name],) = struct.unpack("<f", fields[2])
            elif 3 in fields:
                attributes[name] = int(fields[3])
            elif 4 in fields:
                attributes[name] = bytes(fields[4])
            elif 6 in fields:
                branches.append(fields[6])
    onnx_file.nodes.append(Node(kind, tuple(inputs), tuple(outputs), attributes))
    for branch in branches:
        _read_graph(branch, beside, onnx_file, depth + 1)


def _tensor(data: memoryview, beside: Beside) -> tuple[str, Array]:
    """Name and values, in whichever of the ways that the format has for them."""
    shape: list[int] = []
    external: dict[str, str] = {}
    kind, name = 0, ""
    raw: memoryview | None = None
    for number, value in _fields(data):
        if number == 1:
            shape += [value] if isinstance(value, int) else _varints(value)
        elif number == 2:
            kind = value
        elif number == 4 or number == 9:  # packed floats are their bytes, too
            raw = value
        elif number == 7:
            raw = memoryview(
                np.array([value] if isinstance(value, int) else _varints(value), np.int64).tobytes()
            )
        elif number == 8:
            name = _text(value)
        elif number == 13:
            entry = dict(_fields(value))
            external[_text(entry[1])] = _text(entry[2])
    if external:
        location = external["location"]
        if Path(location).name != location:
            raise ValueError(f"{name} lies in {location!r}, which is not beside it")
        start, size = int(external.get("offset", 0)), int(external["length"])
        raw = beside(location)[start : start + size]
    if kind not in TYPES:
        return name, np.empty(0)
    array: Array = np.frombuffer(b"" if raw is None else raw, TYPES[kind]).reshape(shape)
    return name, array


def _varints(data: memoryview) -> list[int]:
    """Numbers one after another."""
    numbers, offset = [], 0
    while offset < len(data):
        value, offset = _varint(data, offset)
        numbers.append(value)
    return numbers
