"""Representations through bytes and back."""

from typing import Any

import numpy as np
import pytest

from tercet.models.encoder import encode
from tercet.models.representations import OUTPUTS, Representations
from tercet.service.answers.binary import BinaryBody, from_bytes


def to_bytes(representations: Representations, metadata: dict[str, str] | None = None) -> bytes:
    with BinaryBody() as body:
        body.append(representations)
        return b"".join(body.chunks(metadata or {}))


@pytest.mark.parametrize("outputs", [OUTPUTS, ["dense"], ["sparse"], ["colbert"], []])
def test_what_goes_in_comes_out(tiny: Any, outputs: Any) -> None:
    given = encode(tiny, ["hot tea", "", "steam " * 50]).keep(outputs)
    back, metadata = from_bytes(to_bytes(given, {"fingerprint": "f", "model": "🍵"}))
    assert metadata == {"fingerprint": "f", "model": "🍵"}
    assert np.array_equal(back.tokens, given.tokens)
    assert np.array_equal(back.truncated, given.truncated)
    assert (back.dense is None) == ("dense" not in outputs)
    assert (back.sparse is None) == ("sparse" not in outputs)
    assert (back.colbert is None) == ("colbert" not in outputs)
    if back.dense is not None:
        assert np.array_equal(back.dense, given.dense)
    if back.sparse is not None and given.sparse is not None:
        assert np.array_equal(back.sparse.token_ids, given.sparse.token_ids)
        assert np.array_equal(back.sparse.weights, given.sparse.weights)
        assert np.array_equal(back.sparse.indptr, given.sparse.indptr)
    if back.colbert is not None and given.colbert is not None:
        assert np.array_equal(back.colbert.vectors, given.colbert.vectors)
        assert np.array_equal(back.colbert.offsets, given.colbert.offsets)


def test_views_and_empty_rows_survive(tiny: Any) -> None:
    whole = encode(tiny, ["tea", "hot water", "rail"])
    part = whole.take(np.array([2, 0])).with_dimensions(3)
    back, metadata = from_bytes(to_bytes(part))
    assert metadata == {}
    assert np.array_equal(back.dense, part.dense)


@pytest.mark.parametrize("body", [b"", b"short", b"\xff" * 100, b'{"error": {}}'])
def test_other_bytes_are_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match="not safetensors"):
        from_bytes(body)


def test_a_missing_array_is_named(tiny: Any) -> None:
    body = to_bytes(encode(tiny, ["tea"]))
    with pytest.raises(ValueError, match="sparse_weights"):
        from_bytes(body.replace(b"sparse_weights", b"sparse_weighty"))


def test_windows_become_one_body(tiny: Any) -> None:
    whole = encode(tiny, ["hot tea", "", "steam " * 50, "rail"])
    with BinaryBody() as body:
        for rows in ([0], [1, 2], [3]):
            body.append(whole.take(np.array(rows)))
        found, _ = from_bytes(b"".join(body.chunks({})))
    assert np.array_equal(found.tokens, whole.tokens)
    assert np.array_equal(found.dense, whole.dense)
    assert np.array_equal(found.sparse.indptr, whole.sparse.indptr)
    assert np.array_equal(found.sparse.token_ids, whole.sparse.token_ids)
    assert np.array_equal(found.colbert.offsets, whole.colbert.offsets)
    assert np.array_equal(found.colbert.vectors, whole.colbert.vectors)
