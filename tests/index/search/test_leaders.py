"""The leaders of a search: the best by other weights than those that order its hits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tercet.index.candidates import Page, Weights
from tercet.index.documents.boosts import FilterBoost
from tercet.index.documents.filters import Exists
from tercet.index.search.snapshot_query import SnapshotQuery
from tercet.index.token_codecs import TokenCodec
from tests.index.conftest import random_representations

LEADING = Weights(1, 0.5, 1)


@pytest.mark.parametrize("codec", ["int8", "sign"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"weights": Weights(1, 0, 0)},
        {"weights": Weights(0, 1, 0)},
        {"weights": Weights(bm25=1), "text": "tea"},
        {"page": Page(offset=7)},
        {"boosts": [FilterBoost(Exists("year"), 5.0)]},
        {"fusion": "rrf"},
        {"without": ["d0003"]},
    ],
)
def test_leaders_are_the_best_by_their_own_weights(
    build: Any, random_corpus: Any, codec: TokenCodec, options: dict[str, Any]
) -> None:
    snapshot = build(
        random_corpus(60, 1), segment=25, token_codec=codec, bm25=True, fields={"year": "integer"}
    ).snapshot()
    request = SnapshotQuery(random_representations(1, 5), top_k=4, **options)
    found = snapshot.answer(replace(request, leading=LEADING))
    assert found.hits == snapshot.answer(request).hits
    best = snapshot.answer(
        SnapshotQuery(request.query, top_k=2, weights=LEADING, without=request.without)
    ).hits
    scores = [(hit.scores.dense, hit.scores.sparse, hit.scores.colbert) for hit in best]
    np.testing.assert_array_equal(found.leaders, scores)
    assert snapshot.answer(request).leaders is None
