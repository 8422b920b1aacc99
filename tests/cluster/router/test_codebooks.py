"""Token vectors of one learned codebook over shards: scores and hits are those of one machine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tercet.cluster.shards.placement import Placement
from tercet.index.candidates import CandidateLimits, Page, Weights
from tercet.index.search import bounds
from tercet.index.search.snapshot_query import SnapshotQuery
from tercet.index.token_codecs import RESIDUAL_BITS, TokenCodec
from tercet.index.token_vectors.codebook_training import train_codebook
from tercet.service.exceptions import ShardFailedError
from tests.cluster.router.conftest import NAME, Divided, written
from tests.cluster.router.corpora import uneven_corpus
from tests.index.conftest import random_representations, settings_for

DOCUMENTS = 300  # so many that one machine estimates which candidates it need not read
SHARDS = 3


def with_codebook(codec: TokenCodec, seed: int = 0) -> Any:
    """Documents, what they are encoded as, and settings with a codebook that is learned from them."""
    documents, encoded = uneven_corpus(DOCUMENTS, 6, SHARDS)
    assert encoded.colbert is not None
    codebook = train_codebook(encoded.colbert.vectors, RESIDUAL_BITS[codec], seed)
    chosen = {"token_codec": codec, "codebook": codebook, "dense_kind": "flat", "lexical": "idf"}
    return documents, encoded, settings_for(encoded, NAME, fields={"kind": "keyword"}, **chosen)


@pytest.fixture(scope="module", params=["residual1", "residual2", "residual4"])
def divided(request: Any, divide: Any) -> Divided:
    """A collection of each learned codec."""
    made: Divided = divide(*with_codebook(request.param), SHARDS, segment=70)
    return made


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 50),
    tokens=st.sampled_from([2, 12, 40]),
    weights=st.sampled_from([Weights(), Weights(0, 0, 1), Weights(0.2, 0.5, 3), Weights(1, 1, -1)]),
    limits=st.sampled_from([CandidateLimits(), CandidateLimits(150, 150), CandidateLimits(400, 400)]),
    options=st.fixed_dictionaries(
        {
            "top_k": st.sampled_from([1, 10, 60]),
            "fusion": st.sampled_from(["sum", "sum", "rrf"]),
            "group_by": st.sampled_from([None, None, "kind"]),
            "page": st.sampled_from([Page(), Page(offset=4), Page(min_score=0.3)]),
        }
    ),
)
def test_hits_are_those_of_one_machine_that_reads_all(
    divided: Divided, seed: int, tokens: int, weights: Weights, limits: CandidateLimits, options: Any
) -> None:
    query = random_representations(1, 1000 + seed, tokens)
    asked = SnapshotQuery(query, weights=weights, candidates=limits, **options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bounds, "LEAST_SHARE", 1.0)  # of what is left: no estimate
        expected = divided.one.answer(asked).hits
        patch.setattr(bounds, "_share_of", None)  # shards estimate nothing, whatever they have
        assert divided.sharded().answer(asked).hits == expected


@pytest.mark.slow
def test_shards_with_codebooks_of_their_own_are_refused(divide: Any) -> None:
    documents, encoded, wanted = with_codebook("residual1")
    divided = divide(documents, encoded, wanted, SHARDS)
    _, _, other = with_codebook("residual1", seed=1)
    assert other.codebook != wanted.codebook
    rows = np.flatnonzero(Placement.evenly(SHARDS).shards_of([document.id for document in documents]) == 1)
    root = divided.root / "shard1"
    (root / "collections" / NAME).rename(root / "former")
    written(root, other, [documents[row] for row in rows], encoded.take(rows), 100)
    with pytest.raises(
        ShardFailedError, match=r"shard0 and shard1 have different codebooks .*build it in shards"
    ):
        divided.sharded().answer(SnapshotQuery(random_representations(1, 1)))
