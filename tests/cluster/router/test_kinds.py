"""Collections of every kind over shards find what they find on one machine: codecs, windows, sides."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tercet.index.candidates import CandidateLimits, Page, Weights
from tercet.index.documents.boosts import DecayBoost, FilterBoost
from tercet.index.documents.filters import parse_filter
from tercet.index.errors import DocumentNotFoundError, InvalidQueryError
from tercet.index.search.snapshot_query import SnapshotQuery
from tercet.index.windows.store import DocumentWindows
from tercet.models.representations import Representations, offsets_of
from tests.cluster.router.conftest import Divided
from tests.cluster.router.corpora import uneven_corpus
from tests.index.conftest import WINDOW, random_representations, settings_for

FIELDS = {"year": "integer", "tags": "keyword", "kind": "keyword", "new": "boolean"}
KINDS: dict[str, dict[str, Any]] = {
    "plain": {"lexical": "plain"},
    "float16": {"token_codec": "float16", "lexical": "idf"},
    "sign": {"token_codec": "sign", "lexical": "idf"},
    "pooled": {"token_pooling": 2, "lexical": "idf"},
    "none": {"token_codec": "none", "lexical": "idf", "bm25": True},
    "windows": {"window": WINDOW, "lexical": "idf", "bm25": True},
    "colbert": {"dense_dimension": 0, "vocabulary_size": 0},
    "lexical": {"dense_dimension": 0, "token_codec": "none", "lexical": "idf"},
}
SEARCHES: list[dict[str, Any]] = [
    {},
    {"top_k": 3, "contents": False},
    {"weights": Weights(1, 1, 0)},
    {"weights": Weights(1, 0, 0), "top_k": 7, "without": ["d3.0", "none"]},
    {"weights": Weights(0, 0, 1), "page": Page(offset=2, min_score=0.1)},
    {"fusion": "rrf", "candidates": CandidateLimits(20, 10)},
    {"group_by": "tags", "weights": Weights(0.5, 1, 0)},
    {"group_by": "kind", "contents": False, "without": ["d5.0"]},
    {"boosts": (FilterBoost(parse_filter({"gte": {"year": 2003}}), 0.3),), "page": Page(offset=1)},
    {"boosts": (DecayBoost("year", "exp", 2004, 2, 0.5),), "fusion": "rrf", "group_by": "tags"},
]


def of_sides(encoded: Representations, kind: dict[str, Any]) -> Representations:
    """Without the sides that a kind of collection has not."""
    rows = len(encoded)
    if kind.get("dense_dimension") == 0:
        encoded = replace(encoded, dense=np.empty((rows, 0), np.float32))
    if kind.get("vocabulary_size") == 0 and encoded.sparse is not None:
        empty = replace(
            encoded.sparse,
            indptr=np.zeros(rows + 1, np.int64),
            token_ids=encoded.sparse.token_ids[:0],
            weights=encoded.sparse.weights[:0],
        )
        encoded = replace(encoded, sparse=empty)
    return encoded


@pytest.fixture(scope="module", params=sorted(KINDS))
def divided(request: Any, divide: Any) -> Divided:
    """Of sixty documents over three shards."""
    kind = KINDS[request.param]
    documents, encoded = uneven_corpus(60, 5, 3)
    windows = None
    if "window" in kind:
        counts = np.random.default_rng(1).integers(1, 5, len(documents))
        offsets = offsets_of(counts)
        encoded = random_representations(int(offsets[-1]), 5)
        first = 3 * (np.arange(offsets[-1]) - np.repeat(offsets[:-1], counts))
        windows = DocumentWindows(offsets, np.stack([first, first + 3], axis=1))
        documents = [replace(each, text=each.text.ljust(12, ".")) for each in documents]
    wanted = settings_for(encoded, "demo", fields=FIELDS, **{"dense_kind": "flat", **kind})
    if kind.get("dense_dimension") == 0:
        wanted = replace(wanted, dense_kind="auto")
    made: Divided = divide(documents, of_sides(encoded, kind), wanted, 3, windows=windows)
    return made


def outcome(snapshot: Any, query: Representations, search: dict[str, Any]) -> Any:
    """Its hits, or why there are none."""
    try:
        return snapshot.answer(SnapshotQuery(query, **search)).hits
    except InvalidQueryError as error:
        return str(error)


@pytest.mark.slow
@pytest.mark.parametrize("search", SEARCHES, ids=str)
def test_hits_are_those_of_one_machine(divided: Divided, search: dict[str, Any]) -> None:
    bm25 = divided.one.settings.bm25
    for seed in range(4):
        query = random_representations(1, 100 + seed)
        if divided.one.settings.dense_dimension == 0:
            query = replace(query, dense=None)
        if divided.one.settings.vocabulary_size == 0:
            query = replace(query, sparse=None)
        asked = {"weights": Weights().of(divided.one.settings.encoder_sides), **search}
        if bm25:
            asked = {"text": "green tea", **asked, "weights": replace(asked["weights"], bm25=0.5)}
        found = outcome(divided.sharded(), query, asked)
        assert found == outcome(divided.one, query, asked)
        assert isinstance(found, str) or found or search.get("page")


def test_documents_are_explained_as_by_one_machine(divided: Divided) -> None:
    query = random_representations(1, 103)
    settings = divided.one.settings
    query = replace(
        query,
        dense=query.dense if settings.dense_dimension else None,
        sparse=query.sparse if settings.vocabulary_size else None,
    )
    text = "green tea" if settings.bm25 else None
    ids = [
        hit.document.id
        for hit in divided.one.search(query, weights=Weights().of(settings.encoder_sides)).hits
    ]
    expected = divided.one.explanations(query, ids, text)
    found = divided.sharded().explanations(query, ids, text)
    for one, other in zip(expected, found, strict=True):
        assert repr(one) == repr(other)
    assert divided.sharded().encodings_of(ids) == divided.one.encodings_of(ids)


def test_stored_documents_are_queries_as_on_one_machine(divided: Divided) -> None:
    ids = [document.id for document in divided.one.page(None, 9)]
    sharded = divided.sharded()
    for one, other in (
        (divided.one.stored_query(ids[3]), sharded.stored_query(ids[3])),
        (divided.one.examples_query(ids[:2]), sharded.examples_query(ids[:2])),
        (divided.one.examples_query(ids[:4], ids[4:6]), sharded.examples_query(ids[:4], ids[4:6])),
    ):
        assert one.text == other.text
        assert repr(one.representations) == repr(other.representations)
    for ask in (lambda of: of.stored_query("none"), lambda of: of.examples_query([ids[0], "none"])):
        messages = []
        for of in (divided.one, sharded):
            with pytest.raises(DocumentNotFoundError) as caught:
                ask(of)
            messages.append(str(caught.value))
        assert messages[0] == messages[1]


def test_facets_are_those_of_one_machine(divided: Divided) -> None:
    wanted = {"tags": 2, "kind": 10, "new": 1}
    assert divided.sharded().facets(wanted) == divided.one.facets(wanted)
