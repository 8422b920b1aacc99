"""Arrays that grow row by row, read back by the library of their format."""

import numpy as np
import pytest
from safetensors.numpy import load

from tercet.service.answers import growing_arrays
from tercet.service.answers.growing_arrays import GrowingArrays


@pytest.mark.parametrize("memory_bytes", [2**22, 1])
def test_pieces_become_whole_arrays(monkeypatch: pytest.MonkeyPatch, memory_bytes: int) -> None:
    monkeypatch.setattr(growing_arrays, "MEMORY_BYTES", memory_bytes)
    arrays = GrowingArrays()
    for part in range(3):
        arrays.append("rows", np.full((part, 2), part, np.float32))
        arrays.append("flags", np.array([part > 0]))
    arrays.append("empty", np.zeros((0, 4), np.int32))
    arrays.append("offsets", np.arange(2, dtype=np.int64))
    assert arrays.rows("rows") == 3
    assert arrays.rows("absent") == 0
    chunks = list(arrays.chunks())
    assert sum(map(len, chunks)) == arrays.size_bytes == 3 * 2 * 4 + 3 + 2 * 8
    body = load(arrays.header({"model": "tiny"}) + b"".join(chunks))
    assert body["rows"].tolist() == [[1, 1], [2, 2], [2, 2]]
    assert body["flags"].tolist() == [False, True, True]
    assert body["empty"].shape == (0, 4)
    assert body["offsets"].tolist() == [0, 1]
    arrays.close()


def test_a_long_array_is_read_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growing_arrays, "CHUNK_BYTES", 8)
    arrays = GrowingArrays()
    arrays.append("rows", np.arange(5, dtype=np.float32))
    assert [len(chunk) for chunk in arrays.chunks()] == [8, 8, 4]
    arrays.close()
