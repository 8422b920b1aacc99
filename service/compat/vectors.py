"""The vectors of texts as JSON, in the forms that other services have for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np
import orjson

from tercet.models.representations import Float32, Output, Representations
from tercet.service.answers.dtypes import Dtype, typed
from tercet.service.answers.embeddings import base64_json, numbers_json

# Of vectors with a sign for each value, eight in a byte.
SIGNS = {"binary", "ubinary"}


def _float(vector: Float32) -> bytes:
    return b"".join(numbers_json(vector))


def _numbers(vector: Float32, dtype: Dtype) -> bytes:
    return b"".join(numbers_json(typed(vector[None], dtype).values[0]))


def _uint8(vector: Float32) -> bytes:
    moved = typed(vector[None], "int8").values[0].view(np.uint8) ^ np.uint8(128)
    return b"".join(numbers_json(moved))


WRITTEN: Mapping[str, Callable[[Float32], bytes]] = {
    "float": _float,
    "base64": base64_json,
    "int8": partial(_numbers, dtype="int8"),
    "uint8": _uint8,
    "ubinary": partial(_numbers, dtype="ubinary"),
    "binary": partial(_numbers, dtype="binary"),
}
"""`int8`, `binary` and `ubinary`: as `tercet.service.answers.dtypes` says, int8 without its scale, which no
cosine needs; `uint8`: int8 and 128."""


def vector_json(part: Representations, row: int, output: Output, form: str) -> Iterator[bytes]:
    """What an encoder made of one text: a dense vector, a vector for each token, or lexical weights."""
    if output == "dense":
        yield WRITTEN[form](_dense(part)[row])
    elif output == "sparse":
        assert part.sparse is not None  # noqa: S101 - asked for
        ids, weights = part.sparse.row(row)
        pairs = zip(ids.tolist(), weights.astype(np.float64).round(7).tolist(), strict=True)
        yield orjson.dumps([{"index": index, "value": value} for index, value in pairs])
    else:
        assert part.colbert is not None  # noqa: S101 - asked for
        vectors = part.colbert.row(row)
        if form == "base64":
            yield b"[" + b",".join(map(base64_json, vectors)) + b"]"
        else:
            yield from numbers_json(vectors)


def forms_json(parts: Sequence[Representations], forms: Sequence[str]) -> Iterator[bytes]:
    """An object with the dense vectors of all texts in each of the forms."""
    for index, form in enumerate(forms):
        yield (b"," if index else b"{") + orjson.dumps(form) + b":["
        vectors = (vector for part in parts for vector in _dense(part))
        for row, vector in enumerate(vectors):
            yield b"," * bool(row) + WRITTEN[form](vector)
        yield b"]"
    yield b"}"


def only_json(parts: Sequence[Representations], forms: Sequence[str]) -> Iterator[bytes]:
    """The dense vector of the only text; an empty list without one."""
    yield (
        b"".join(WRITTEN[form](vector) for form in forms for part in parts for vector in _dense(part))
        or b"[]"
    )


def similarities_json(parts: Sequence[Representations], _forms: Sequence[str]) -> Iterator[bytes]:
    """The cosines of each text's dense vector and the last one's; all have length 1."""
    vectors = np.concatenate([_dense(part) for part in parts])
    return numbers_json(vectors[:-1] @ vectors[-1])


def _dense(part: Representations) -> Float32:
    assert part.dense is not None  # noqa: S101 - asked for
    return part.dense
