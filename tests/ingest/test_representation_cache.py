"""What was encoded before comes again as it was, within its bytes, and once."""

from typing import Any

import numpy as np

from tercet.ingest.representation_cache import RepresentationCache
from tercet.models.encoder import encode

TEXTS = ["hot tea", "the station", "a long walk by the river", "rain"]


def test_kept_texts_come_once_as_they_were(eight: Any) -> None:
    kept, encoded = RepresentationCache(), encode(eight, TEXTS[1:3])
    kept.keep(TEXTS[1:3], encoded)
    assert kept.take(TEXTS[0]) is None
    found = kept.take(TEXTS[2])
    assert found is not None
    assert found.dense is not None
    assert encoded.dense is not None
    assert np.array_equal(found.dense[0], encoded.dense[1])
    assert kept.take(TEXTS[2]) is None
    assert kept.take(TEXTS[1]) is not None


def test_no_more_is_kept_than_there_is_room_for(eight: Any) -> None:
    kept = RepresentationCache(limit_bytes=600)
    kept.keep(TEXTS, encode(eight, TEXTS))
    found = [kept.take(text) is not None for text in TEXTS]
    assert found == sorted(found, reverse=True)
    assert 0 < sum(found) < len(TEXTS)
