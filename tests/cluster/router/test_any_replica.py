"""Answers are those of one machine with what the servers hold that answered, whichever of them did."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tercet.cluster.router.collections import ShardedCollections
from tercet.cluster.router.snapshot import ShardedSnapshot
from tercet.cluster.shards.calls import Loop
from tercet.cluster.shards.client import ShardClient
from tercet.cluster.shards.fleet import Fleet
from tercet.cluster.shards.placement import Placement
from tercet.index.candidates import Document, Weights
from tercet.index.collection import Collection
from tercet.index.search.snapshot_query import SnapshotQuery
from tercet.index.snapshot import Snapshot
from tercet.models.encoder import Encoder
from tercet.models.representations import Representations
from tercet.service.app import create_app
from tercet.service.exceptions import CallFailedError
from tercet.service.load.reading import ANY_TIME, Reading
from tercet.service.remote.transport import RemoteAnswer, RemoteRequest
from tercet.service.settings.settings import Settings
from tercet.service.shard.messages import unpack
from tests.cluster.router.conftest import NAME, AppTransport, Background, ready, written
from tests.cluster.router.corpora import uneven_corpus
from tests.index.conftest import random_representations, settings_for

SHARDS = SERVERS = 2
FIELDS = {"year": "integer", "tags": "keyword"}
CHOICES = list(product(range(SERVERS), repeat=SHARDS))

choices = st.sampled_from(CHOICES)
often = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


class Counting(AppTransport):
    """The way to a server; asked: by what; told: of how many terms; is_lost: it does not answer."""

    def __init__(self, name: str, app: Any) -> None:
        super().__init__(name, app)
        self.asked: list[str] = []
        self.told = 0
        self.is_lost = False

    async def request(self, request: RemoteRequest) -> RemoteAnswer:
        if self.is_lost:
            raise CallFailedError("unreachable", "is lost")
        self.asked.append(f"{request.method} {request.path.partition('?')[0].rpartition('/')[2]}")
        answer = await super().request(request)
        if b"change.terms" in answer.body:
            arrays = unpack(answer.body, {}).arrays
            self.told += sum(len(array) for name, array in arrays.items() if name.endswith("change.terms"))
        return answer


class Replicated:
    """Shards of two servers each, of which a test says which one is asked."""

    def __init__(self, background: Background, fleet: Fleet, ones: dict[tuple[int, ...], Snapshot]) -> None:
        """ones: a collection with all that these servers hold."""
        self.background = background
        self.fleet = fleet
        self.ones = ones
        self.collections = ShardedCollections(fleet)
        background.run(self.collections.start())

    def choose(self, servers: Sequence[int]) -> None:
        """From now on these are asked, and no others."""
        for shard, server in zip(self.fleet.servers, servers, strict=True):
            shard.budget._saved = -1e9  # so that no second one is asked
            for number, times in enumerate(shard.times.servers):
                times.waiting = 0 if number == server else 1000

    def sharded(self, how: Reading = ANY_TIME) -> ShardedSnapshot:
        return self.background.run(self.collections.open(NAME, how))

    def of_documents(self, snapshot: Any, asked: SnapshotQuery) -> Any:
        """The hits; but where servers are behind, while the writing ones tell of terms, what depends on the
        documents alone: which are found, and the scores of two sides.
        """
        if self.ones[0, 0].documents == self.ones[1, 1].documents:
            return snapshot.answer(asked).hits
        hits = snapshot.answer(replace(asked, top_k=200, group_by=None)).hits
        return sorted((hit.document.id, hit.scores.dense, hit.scores.colbert) for hit in hits)

    def asked(self) -> list[str]:
        """What was asked since the last time, of all servers."""
        asked = []
        for shard in self.fleet.servers:
            for client in shard.clients:
                transport = client.server._transport
                assert isinstance(transport, Counting)
                asked += transport.asked
                transport.asked = []
        return sorted(asked)


@pytest.fixture(scope="module", params=["alike", "behind"])
def replicated(
    request: Any, tmp_path_factory: pytest.TempPathFactory, background: Background, tiny: Encoder
) -> Iterator[Replicated]:
    """Of 80 documents; alike: all have the same; behind: the second server of each shard lacks what the first
    was written since.
    """
    tmp_path, stack = tmp_path_factory.mktemp("replicated"), AsyncExitStack()
    documents, encoded = uneven_corpus(80, 5, SHARDS)
    wanted = settings_for(encoded, NAME, fields=FIELDS, dense_kind="flat", lexical="idf", bm25=True)
    places = Placement.evenly(SHARDS).shards_of([document.id for document in documents])
    clients: list[list[ShardClient]] = []
    for shard in range(SHARDS):
        rows, root = np.flatnonzero(places == shard), tmp_path / f"{shard}"
        written(root, wanted, [documents[row] for row in rows], encoded.take(rows), 20)
        clients.append([])
        for server in range(SERVERS):
            own = shutil.copytree(root, tmp_path / f"{shard}-{server}")
            app = create_app(Settings(data=own), tiny)
            background.run(stack.enter_async_context(app.router.lifespan_context(app)))
            clients[shard].append(ShardClient(Counting(f"{shard}-{server}", app)))
    background.run(ready([client.server._transport for shard in clients for client in shard]))  # type: ignore[misc]
    fleet = Fleet(clients, Loop())
    made = Replicated(background, fleet, {})
    later, later_encoded = documents, encoded
    if request.param == "behind":
        later, later_encoded = _written_since(made, documents, encoded)
    later_places = Placement.evenly(SHARDS).shards_of([document.id for document in later])
    for servers in CHOICES:
        all_documents: list[Document] = []
        parts = []
        for shard, server in enumerate(servers):
            held, of, at = (documents, encoded, places) if server else (later, later_encoded, later_places)
            rows = np.flatnonzero(at == shard)
            all_documents += [held[row] for row in rows]
            parts.append(of.take(rows))
        root = tmp_path / f"one-{servers}"
        written(root, wanted, all_documents, Representations.concatenate(parts), 20)
        made.ones[servers] = Collection.open(root / "collections", NAME).snapshot()
    yield made
    background.run(stack.aclose())


def _written_since(
    made: Replicated, documents: list[Document], encoded: Representations
) -> tuple[list[Document], Representations]:
    """Writes to the first servers, and what they have then."""
    more, more_encoded = uneven_corpus(95, 9, SHARDS, copies=1)
    more, more_encoded = more[80:], more_encoded.take(np.arange(80, 95))
    kept = np.arange(7, 80)
    with made.collections.writing(NAME) as collection:
        collection.delete([document.id for document in documents[:7]])
        collection.put(more, more_encoded)
    assert not any("documents" in each for each in _asked_of_replicas(made))
    return [*documents[7:], *more], Representations.concatenate([encoded.take(kept), more_encoded])


def _asked_of_replicas(made: Replicated) -> list[str]:
    return [
        each
        for shard in made.fleet.servers
        for client in shard.clients[1:]
        for each in client.server._transport.asked  # type: ignore[attr-defined]
    ]


@pytest.mark.slow
@often
@given(
    servers=choices,
    seed=st.integers(0, 30),
    text=st.sampled_from(["tea", "green tea and water", "the kettle"]),
    weights=st.sampled_from([Weights(), Weights(0, 1, 0), Weights(1, 1, 1, 1), Weights(0, 0, 0, 1)]),
    group_by=st.sampled_from([None, None, "tags"]),
    fusion=st.sampled_from(["sum", "sum", "rrf"]),
    top_k=st.sampled_from([3, 10, 200]),
)
def test_answers_are_those_of_the_servers_that_are_asked(
    replicated: Replicated, servers: tuple[int, ...], seed: int, **options: Any
) -> None:
    asked = SnapshotQuery(random_representations(1, seed), **options)
    replicated.choose(servers)
    snapshot, one = replicated.sharded(), replicated.ones[servers]
    assert replicated.of_documents(snapshot, asked) == replicated.of_documents(one, asked)
    assert snapshot.documents == one.documents
    assert snapshot.facets({"tags": 5}) == one.facets({"tags": 5})
    assert replicated.sharded().count() == one.count()


@pytest.mark.slow
def test_what_is_known_of_one_server_is_not_told_again(replicated: Replicated) -> None:
    asked = SnapshotQuery(random_representations(1, 3), text="green tea", top_k=5)

    def search(servers: tuple[int, ...]) -> list[str]:
        replicated.choose(servers)
        snapshot = replicated.sharded()
        replicated.asked()
        snapshot.answer(asked)
        return replicated.asked()

    for servers in CHOICES:
        search(servers)
    rounds = sorted([f"POST {each}" for each in ("candidates", "hits")] * SHARDS)
    ways = [client.server._transport for shard in replicated.fleet.servers for client in shard.clients]
    counting = [way for way in ways if isinstance(way, Counting)]
    assert len(counting) == len(ways)
    for way in counting:
        way.told = 0
    for servers in CHOICES * 2:
        assert [each for each in search(servers) if each != "POST statistics"] == rounds
    assert not any(way.told for way in counting)


def test_a_request_keeps_to_the_servers_that_it_asked_first(replicated: Replicated) -> None:
    asked = SnapshotQuery(random_representations(1, 3), text="tea", top_k=200)
    replicated.choose((1, 0))
    snapshot, one = replicated.sharded(), replicated.ones[1, 0]
    assert snapshot.documents == one.documents
    replicated.choose((0, 1))
    assert replicated.of_documents(snapshot, asked) == replicated.of_documents(one, asked)
    assert snapshot.facets({"tags": 5}) == one.facets({"tags": 5})


def test_a_request_keeps_to_the_server_that_answered(replicated: Replicated) -> None:
    asked = SnapshotQuery(random_representations(1, 3), text="tea", top_k=200)
    replicated.choose((0, 0))
    snapshot, one = replicated.sharded(), replicated.ones[1, 0]
    lost = replicated.fleet.servers[0].clients[0].server._transport
    assert isinstance(lost, Counting)
    lost.is_lost = True
    assert snapshot.documents == one.documents
    lost.is_lost = False
    assert replicated.of_documents(snapshot, asked) == replicated.of_documents(one, asked)


def test_who_is_asked_in_place_of_another_tells_what_is_new(replicated: Replicated) -> None:
    asked = SnapshotQuery(random_representations(1, 3), top_k=200)
    for servers in CHOICES:
        replicated.choose(servers)
        replicated.sharded().answer(asked)
    replicated.choose((0, 0))
    lost, other = (client.server._transport for client in replicated.fleet.servers[0].clients)
    assert isinstance(lost, Counting)
    assert isinstance(other, Counting)
    lost.is_lost, other.told = True, 0
    found = replicated.of_documents(replicated.sharded(), asked)
    assert found == replicated.of_documents(replicated.ones[1, 0], asked)
    lost.is_lost = False
    assert other.told == 0
    replicated.fleet.servers[0].writer = 0  # the replicas of these tests say that they write


def test_servers_with_the_same_are_at_one_state(replicated: Replicated) -> None:
    seen, versions = set(), set()
    for servers in CHOICES:
        replicated.choose(servers)
        snapshot = replicated.sharded()
        versions.add(snapshot.version)
        seen.add(tuple(snapshot._view._shards))
    alike = replicated.ones[0, 0].documents == replicated.ones[1, 1].documents
    assert len(seen) == len(versions) == (1 if alike else len(CHOICES))


def test_what_has_to_be_the_newest_is_of_the_writing_servers(replicated: Replicated) -> None:
    replicated.choose((1, 1))
    asked, writers = SnapshotQuery(random_representations(1, 3), top_k=200), replicated.ones[0, 0]
    newest = replicated.sharded(Reading(newest=True))
    assert newest.answer(asked).hits == writers.answer(asked).hits
    assert newest.count() == writers.count()
