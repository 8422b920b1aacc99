"""Embeddings as JSON, piece by piece."""

import base64
import json
from typing import Any

import numpy as np
import pytest

from tercet.models.encoder import encode
from tercet.service.answers import embeddings
from tercet.service.answers.embeddings import embedding_json


@pytest.mark.parametrize(("values", "size"), [(1, 3), (3, 3), (20, 12), (4096, 3 * 2**16)])
def test_pieces_of_any_size_make_the_same_json(
    monkeypatch: pytest.MonkeyPatch, tiny: Any, values: int, size: int
) -> None:
    monkeypatch.setattr(embeddings, "PIECE_VALUES", values)
    monkeypatch.setattr(embeddings, "PIECE_BYTES", size)
    given = encode(tiny, ["hot water with tea leaf", ""])
    for row in range(2):
        vectors = given.colbert.row(row)
        plain = json.loads(b"".join(embedding_json(given, row, tiny.tokenizer, packed=False)))
        assert np.array_equal(np.float32(plain["dense"]), given.dense[row])
        assert np.array_equal(np.float32(plain["colbert"]), vectors)
        packed = json.loads(b"".join(embedding_json(given, row, tiny.tokenizer, packed=True)))
        assert base64.b64decode(packed["dense"]["data"]) == given.dense[row].tobytes()
        assert base64.b64decode(packed["colbert"]["data"]) == vectors.tobytes()
        assert packed["colbert"]["shape"] == list(vectors.shape)
        assert plain["sparse"] == packed["sparse"]


def test_no_piece_is_large(tiny: Any) -> None:
    whole = encode(tiny, ["tea " * 30])
    repeated = whole.colbert.take(np.zeros(1, np.int64))
    many = np.tile(repeated.vectors, (5000, 1))
    large = type(whole)(
        whole.tokens,
        whole.truncated,
        colbert=type(repeated)(many, np.array([0, len(many)])),
    )
    for packed in (False, True):
        pieces = list(embedding_json(large, 0, tiny.tokenizer, packed=packed))
        assert max(map(len, pieces)) <= 2**18
        assert len(pieces) > 10
