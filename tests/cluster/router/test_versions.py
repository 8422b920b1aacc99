"""A request sees each shard as it was when it first asked, whatever is written meanwhile."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tercet.cluster.router.collection import View
from tercet.cluster.router.term_states import TermStates
from tercet.cluster.router.terms import KnownTerms
from tercet.index.search.snapshot_query import SnapshotQuery
from tercet.models.representations import Representations
from tercet.service.exceptions import ShardStateGoneError
from tests.cluster.router.conftest import Divided
from tests.cluster.router.corpora import uneven_corpus
from tests.index.conftest import random_representations, settings_for

FIELDS = {"year": "integer", "tags": "keyword", "kind": "keyword", "new": "boolean"}


@pytest.fixture
def divided(divide: Any) -> Divided:
    """Of fifty documents over two shards."""
    documents, encoded = uneven_corpus(50, 6, 2)
    wanted = settings_for(encoded, "demo", fields=FIELDS, dense_kind="flat", lexical="idf", bm25=True)
    made: Divided = divide(documents, encoded, wanted, 2)
    return made


def ids(snapshot: Any, query: Representations) -> list[str]:
    found = snapshot.answer(SnapshotQuery(query, "green tea", top_k=50)).hits
    return [hit.document.id for hit in found]


def test_a_request_keeps_to_its_versions(divided: Divided) -> None:
    query = random_representations(1, 7)
    before = divided.sharded()
    first, scores = ids(before, query), before.answer(SnapshotQuery(query, "green tea")).hits
    facets = before.facets({"tags": 3})
    with divided.collections.writing("demo") as written:
        written.delete(first[:3])
    later = divided.sharded()
    assert set(ids(later, query)) == set(first[3:])
    assert later.version != before.version
    # As if nothing had been deleted: statistics, candidates, contents and counts.
    assert before.answer(SnapshotQuery(query, "green tea")).hits == scores
    assert before.facets({"tags": 3}) == facets
    assert len(before.explanations(query, first[:3], "green tea")) == 3
    assert before.documents == later.documents + 3


@pytest.mark.slow
def test_counts_follow_from_change_to_change(divided: Divided) -> None:
    query = random_representations(1, 7)
    known: list[KnownTerms] = []
    for _ in range(4):
        snapshot = divided.sharded()
        found = ids(snapshot, query)
        view: View = snapshot._view
        known.append(view.terms)
        with divided.collections.writing("demo") as written:
            written.delete(found[:1])
    snapshot = divided.sharded()
    ids(snapshot, query)
    view = snapshot._view
    followed = view.terms
    view.known.term_states = TermStates(view.known.term_states.nothing, [1, 1])
    anew, _ = View(view.known, view.fan_out).tell()
    assert (anew.states, anew.documents) == (followed.states, followed.documents)
    assert anew.totals is not None
    assert followed.totals is not None
    assert anew.totals.sums == followed.totals.sums
    assert len({each.states for each in known}) == 4


def test_a_snapshot_that_is_not_kept_is_told(divided: Divided) -> None:
    snapshot = divided.sharded()
    query = random_representations(1, 7)
    ids(snapshot, query)
    terms = snapshot._view.terms
    gone = tuple(replace(shard, state="gone") for shard in terms.shards)
    snapshot._view._fixed = replace(terms, shards=gone)
    with pytest.raises(ShardStateGoneError):
        ids(snapshot, query)
