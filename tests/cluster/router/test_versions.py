"""A request sees each shard as it was when it first asked, whatever is written meanwhile."""

from __future__ import annotations

from typing import Any

import pytest

from tercet.cluster.router.fan_out import FanOut
from tercet.cluster.router.snapshot import ShardedSnapshot
from tercet.cluster.router.statistics import FRESH_SECONDS, KnownTerms, version_of
from tercet.index.search.snapshot_query import SnapshotQuery
from tercet.models.representations import Representations
from tercet.service.exceptions import ShardStateGoneError
from tercet.service.load.reading import Reading
from tercet.service.shard.records import ShardState
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


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is asked of all shards from now on, a word for each round."""
    rounds: list[str] = []
    ask = FanOut.ask

    def noted(fan_out: FanOut, operation: str, *args: Any, **options: Any) -> Any:
        rounds.append(operation)
        return ask(fan_out, operation, *args, **options)

    monkeypatch.setattr(FanOut, "ask", noted)
    return rounds


def terms_of(snapshot: ShardedSnapshot) -> KnownTerms:
    terms = snapshot._view.terms
    assert terms is not None
    return terms


def search(snapshot: ShardedSnapshot) -> list[str]:
    found = snapshot.answer(SnapshotQuery(random_representations(1, 7), top_k=50)).hits
    return [hit.document.id for hit in found]


def test_most_searches_take_two_rounds(divided: Divided, asked: list[str]) -> None:
    first = divided.sharded()
    hits = search(first)
    assert asked == ["description", "statistics", "candidates", "hits"]
    with divided.collections.writing("demo") as written:
        written.delete(hits[:3])
    asked.clear()
    soon = divided.sharded()
    assert search(soon) == hits[3:]
    assert asked == ["candidates", "hits"]
    assert terms_of(soon) is terms_of(first)  # scores go by what was known, which is a second old at most
    assert soon.version == f"{version_of(soon._view._shards)}/{terms_of(first).version}"
    asked.clear()
    newest = divided.sharded(Reading(newest=True))
    found = search(newest)
    assert set(found) == set(hits[3:])
    assert sorted(asked) == ["candidates", "candidates", "hits", "statistics"]
    assert newest.version == terms_of(newest).version == version_of(soon._view._shards)
    asked.clear()
    assert search(divided.sharded(Reading(newest=True))) == found
    assert sorted(asked) == ["candidates", "hits", "statistics"]  # two rounds, as nothing is new


def test_what_is_known_of_terms_is_a_second_old_at_most(divided: Divided, asked: list[str]) -> None:
    first = divided.sharded()
    hits = search(first)
    with divided.collections.writing("demo") as written:
        written.delete(hits[:3])
    asked.clear()
    first._view.known.statistics._asked -= FRESH_SECONDS
    later = divided.sharded()
    assert set(search(later)) == set(hits[3:])
    assert sorted(asked) == ["candidates", "candidates", "hits", "statistics"]
    assert terms_of(later).version == version_of(later._view._shards) != terms_of(first).version
    asked.clear()
    search(divided.sharded())
    assert asked == ["candidates", "hits"]


def test_a_page_goes_by_the_terms_of_the_one_before(divided: Divided) -> None:
    hits = search(divided.sharded())
    with divided.collections.writing("demo") as written:
        written.delete(hits[:3])
    page = divided.sharded()
    search(page)
    search(divided.sharded(Reading(newest=True)))  # by which newer terms are known
    following = divided.sharded(Reading(snapshot=page.version))
    assert following.version == page.version
    search(following)
    assert terms_of(following) is terms_of(page)


@pytest.mark.slow
def test_counts_follow_from_change_to_change(divided: Divided) -> None:
    known: list[KnownTerms] = []
    for _ in range(4):
        snapshot = divided.sharded(Reading(newest=True))
        found = search(snapshot)
        known.append(terms_of(snapshot))
        with divided.collections.writing("demo") as written:
            written.delete(found[:1])
    followed = divided.sharded(Reading(newest=True))
    search(followed)
    followed._view.known.statistics.keep(followed._view.known.statistics.nothing)
    anew = divided.sharded()
    search(anew)
    assert terms_of(anew).shards == terms_of(followed).shards
    totals = [terms_of(snapshot).totals for snapshot in (anew, followed)]
    assert totals[0] is not None
    assert totals[1] is not None
    assert totals[0].sums == totals[1].sums
    assert len({each.version for each in known}) == 4


def test_a_snapshot_that_is_not_kept_is_told(divided: Divided) -> None:
    snapshot = divided.sharded()
    query = random_representations(1, 7)
    ids(snapshot, query)
    snapshot._view._shards = [ShardState("gone", "gone", 1)] * 2
    with pytest.raises(ShardStateGoneError):
        ids(snapshot, query)
