"""ONNX files of strangers: whatever they hold is read, or refused by name."""

from __future__ import annotations

import os
import random
from pathlib import Path

import numpy as np
import pytest

from tercet.models.errors import CheckpointError
from tercet.models.graphs.onnx_file import MAX_BRANCHES, read_onnx

MUTATIONS = 3_000


def varint(value: int) -> bytes:
    parts = []
    while value >= 0x80:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*parts, value])


def field(number: int, value: int | bytes) -> bytes:
    """One field of a message: a number, or bytes with their length."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def tensor(*parts: bytes) -> bytes:
    return field(5, b"".join((field(8, b"w"), *parts)))


FLOATS = np.arange(6, dtype=np.float32)
INSIDE = tensor(field(1, 2), field(1, 3), field(2, 1), field(9, FLOATS.tobytes()))
NODE = field(1, field(1, b"x") + field(2, b"y") + field(4, b"Gelu") + field(5, field(1, b"a") + field(3, 7)))


def beside(location: bytes) -> bytes:
    """Weights in a file beside the graph's."""
    entries = ((b"location", location), (b"length", b"24"))
    external = (field(13, field(1, key) + field(2, value)) for key, value in entries)
    return tensor(field(1, 6), field(2, 1), *external)


def written(folder: Path, graph: bytes) -> Path:
    path = folder / "model.onnx"
    path.write_bytes(field(7, graph))
    return path


def test_nodes_and_weights_are_read(tmp_path: Path) -> None:
    (tmp_path / "model.data").write_bytes(FLOATS.tobytes())
    for weights, shape in ((INSIDE, (2, 3)), (beside(b"model.data"), (6,))):
        read = read_onnx(written(tmp_path, NODE + weights))
        assert (read.nodes[0].kind, read.nodes[0].attributes) == ("Gelu", {"a": 7})
        assert read.weights["w"].shape == shape
        assert read.weights["w"].ravel().tolist() == FLOATS.tolist()


def nested(depth: int) -> bytes:
    graph = NODE
    for _ in range(depth):
        graph = field(1, field(5, field(1, b"then") + field(6, graph)))
    return graph


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (b"\xff" * 200_000, "more than 64 bits"),
        (field(1, field(4, 5)), "cannot be read"),  # a number where a name should be
        (field(1, field(5, 5)), "cannot be read"),
        (field(5, 5), "cannot be read"),
        (tensor(field(1, 2**63), field(2, 1), field(9, b"")), "cannot be read"),
        (tensor(field(1, 2**40), field(1, 2**40), field(2, 1)), "cannot be read"),
        (nested(MAX_BRANCHES + 1), "branches one in another"),
        (nested(300), "branches one in another"),
        (INSIDE[:-1], "it ends too early"),
        (beside(b"../model.data"), "not beside it"),
        (beside(b"missing"), "No such file"),
        (beside(b"pipe"), "pipe is no file"),
        (beside(b"passwords"), "passwords is a link to a file elsewhere"),
        (beside(b"folder"), "folder is no file"),
        (beside(b"loop"), "cannot be read"),
    ],
    ids=range(15),
)
def test_what_is_no_graph_is_refused_at_once(tmp_path: Path, graph: bytes, message: str) -> None:
    folder = tmp_path / "checkpoint"
    (folder / "folder").mkdir(parents=True)
    os.mkfifo(folder / "pipe")
    (tmp_path / "secret").write_bytes(FLOATS.tobytes())
    (folder / "loop").symlink_to("loop")
    (folder / "passwords").symlink_to("../secret")
    with pytest.raises(CheckpointError, match=message):
        read_onnx(written(folder, graph))


def test_links_to_one_folder_are_those_of_a_cache(tmp_path: Path) -> None:
    """As Hugging Face's has them: all files of a snapshot are links to its blobs."""
    for name in ("blobs", "snapshot"):
        (tmp_path / name).mkdir()
    (tmp_path / "blobs" / "1").write_bytes(field(7, beside(b"model.data")))
    (tmp_path / "blobs" / "2").write_bytes(FLOATS.tobytes())
    for name, blob in (("model.onnx", "1"), ("model.data", "2")):
        (tmp_path / "snapshot" / name).symlink_to(f"../blobs/{blob}")
    assert read_onnx(tmp_path / "snapshot" / "model.onnx").weights["w"].tolist() == FLOATS.tolist()


def test_changed_bytes_are_read_or_refused_by_name(tmp_path: Path) -> None:
    rng, sound = random.Random(0), NODE + INSIDE + nested(3)
    refused = 0
    for _ in range(MUTATIONS):
        graph = bytearray(sound)
        for _ in range(rng.randint(1, 4)):
            graph[rng.randrange(len(graph))] = rng.randrange(256)
        if rng.random() < 0.2:
            del graph[rng.randrange(len(graph)) :]
        try:
            read_onnx(written(tmp_path, bytes(graph)))
        except CheckpointError:
            refused += 1
    assert 0 < refused < MUTATIONS
