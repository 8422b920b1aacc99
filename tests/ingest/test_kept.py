"""What was encoded before comes again as it was, within its bytes, and once."""

from typing import Any

import numpy as np

from ingest.kept import KeptRepresentations
from models.encoder import encode
from models.representations import Representations

TEXTS = ["hot tea", "the station", "a long walk by the river", "rain"]


def same(one: Representations, other: Representations) -> bool:
    assert one.colbert is not None
    assert other.colbert is not None
    assert one.dense is not None
    assert other.dense is not None
    return (
        np.array_equal(one.tokens, other.tokens)
        and np.allclose(one.dense, other.dense, atol=1e-6)
        and np.allclose(one.colbert.vectors, other.colbert.vectors, atol=1e-6)
    )


def test_kept_texts_come_once_and_in_their_order(eight: Any) -> None:
    kept, asked = KeptRepresentations(), list[str]()

    def encoded(texts: Any) -> Representations:
        asked.extend(texts)
        return encode(eight, texts, "document")

    whole = encode(eight, TEXTS, "document")
    kept.keep(TEXTS[1:3], encode(eight, TEXTS[1:3], "document"))
    assert same(kept.encoded(encoded, TEXTS), whole)
    assert asked == [TEXTS[0], TEXTS[3]]
    assert same(kept.encoded(encoded, TEXTS), whole)
    assert asked == [TEXTS[0], TEXTS[3], *TEXTS]


def test_no_more_is_kept_than_there_is_room_for(eight: Any) -> None:
    asked: list[str] = []

    def encoded(texts: Any) -> Representations:
        asked.extend(texts)
        return encode(eight, texts, "document")

    kept = KeptRepresentations(limit_bytes=600)
    kept.keep(TEXTS, encode(eight, TEXTS, "document"))
    kept.encoded(encoded, TEXTS)
    assert asked == TEXTS[len(TEXTS) - len(asked) :]
    assert 0 < len(asked) < len(TEXTS)
