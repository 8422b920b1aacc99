"""Two shards of two servers each, of which one follows the other: answers while some of them are lost."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import httpx
import pytest

from tercet.cluster.objects.opening import open_store
from tercet.cluster.router.app import create_router_app
from tercet.cluster.router.statistics import FRESH_SECONDS
from tercet.cluster.shards.servers import ShardServers
from tercet.cluster.snapshots.following import Follower
from tercet.cluster.snapshots.pushing import push
from tercet.index.collection import Collection
from tercet.models.encoder import Encoder
from tercet.service.app import create_app
from tercet.service.settings.settings import Settings
from tests.cluster.conftest import free_port
from tests.cluster.router.faults import Fault, Relay, relay
from tests.service.conftest import real_server

pytestmark = pytest.mark.slow

WORDS = ["tea", "water", "rail", "steam", "leaf", "black", "station"]
QUERIES = [
    {"query": "hot tea", "top_k": 30},
    {"query": "steam water", "top_k": 4, "weights": {"dense": 1, "sparse": 1, "colbert": 1, "bm25": 0.5}},
    {"query": "black leaf", "fusion": "rrf", "top_k": 30},
]
SOON_SECONDS, LATER_SECONDS = 20.0, 60.0  # the former where somebody is silent for half of it
WRITERS, FOLLOWERS = 0, 1
FOLLOWER = """
import sys
from pathlib import Path
from tercet.cluster.snapshots.following import Follower
from tercet.service.app import create_app
from tercet.service.serving import server_for
from tercet.service.settings.settings import Settings
from tests.conftest import TinyEncoder

data, url, port = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
settings = Settings(data=data, follow=url, follow_seconds=0.05, port=port)
server_for(create_app(settings, TinyEncoder(), following=Follower(url, data)), settings).run()
"""


@dataclass
class Replicated:
    """router, one: addresses of the router and of a server with the same documents; servers: what the router
    knows of each shard; relays: before the writing servers and the second follower; stopped: the process of
    the first follower; publish: has the followers take up what the writing servers have.
    """

    router: str
    one: str
    servers: Sequence[ShardServers]
    relays: Sequence[Relay]
    stopped: subprocess.Popen[bytes]
    publish: Callable[[], None]

    def prefer(self, server: int) -> None:
        """From now on these are expected to answer first, and no second one is asked since they take long."""
        for shard in self.servers:
            shard.budget._saved = -1e9
            for number, times in enumerate(shard.times.servers):
                times._left = -math.inf
                times._tell(1.0 if number == server else 100.0)

    def search(self, seconds: float = LATER_SECONDS, **changes: Any) -> httpx.Response:
        return asked(self.router, seconds, **QUERIES[0] | changes)

    def require_same(self, seconds: float = LATER_SECONDS) -> None:
        """Every answer is that of the one server, within so much time."""
        for query in QUERIES:
            expected, found = asked(self.one, **query), asked(self.router, seconds, **query)
            assert found.status_code == 200, found.text
            assert hits(found) == hits(expected)


def asked(url: str, seconds: float = LATER_SECONDS, **body: Any) -> httpx.Response:
    headers = {"X-Request-Timeout": f"{seconds}"}
    return httpx.post(f"{url}/search", json={"collection": "demo", **body}, headers=headers, timeout=90)


def hits(answer: httpx.Response) -> list[tuple[str, float, dict[str, float]]]:
    return [(hit["id"], hit["score"], hit["scores"]) for hit in answer.json()["hits"]]


def written(url: str, numbers: Sequence[int], name: str = "demo") -> Any:
    documents = [{"id": f"d{row}", "text": f"{WORDS[row % 7]} {WORDS[row % 5]}"} for row in numbers]
    answer = httpx.put(f"{url}/collections/{name}/documents", json={"documents": documents})
    assert answer.is_success, answer.text
    return answer.json()


def published(url: str, root: Path, store: str) -> int:
    """Has a server publish its collection, and pushes that; how many documents it has."""
    httpx.post(f"{url}/collections/demo/merge").raise_for_status()
    until(lambda: not {"flushing", "merging"} & {key for key, on in stats(url).items() if on is True})
    push(Collection.open(root / "collections", "demo"), open_store(store), root / "snapshots")
    return int(stats(url)["documents"])


def stats(url: str) -> dict[str, Any]:
    found: dict[str, Any] = httpx.get(f"{url}/collections/demo/stats").json()
    return found


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@contextmanager
def process(data: Path, url: str) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """A server that follows a URL in a process of its own."""
    with httpx.Client() as client, ExitStack() as stack:
        port = free_port()
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-c", FOLLOWER, str(data), url, str(port)]
        started = stack.enter_context(subprocess.Popen(command, env=environment))
        stack.callback(started.kill)
        address = f"http://127.0.0.1:{port}"

        def is_ready() -> bool:
            assert started.poll() is None
            try:
                return client.get(f"{address}/ready").status_code == 200
            except httpx.HTTPError:
                return False

        until(is_ready)
        yield address, started


@pytest.fixture(scope="module")
def replicated(tmp_path_factory: pytest.TempPathFactory, tiny: Encoder) -> Iterator[Replicated]:
    root = tmp_path_factory.mktemp("replicas")
    with ExitStack() as stack:

        def served(name: str, **settings: Any) -> str:
            made = Settings(data=root / name, **settings)
            following = None if made.follow is None else Follower(made.follow, made.data)
            return stack.enter_context(real_server(create_app(made, tiny, following=following)))

        names = ("first", "second")
        stores = [f"file://{root}/store-{name}" for name in names]
        writers = [served(name) for name in names]
        relays = [stack.enter_context(relay(url)) for url in writers]
        alone = Settings(data=root / "alone", shards=tuple(each.url for each in relays))
        with real_server(create_router_app(alone, tiny)) as router:
            created = {"lexical": "idf", "bm25": True, "dense_kind": "flat"}
            one = served("one")
            for url in (router, one):
                assert httpx.put(f"{url}/collections/demo", json=created).status_code == 201
                written(url, range(40))
        counts = [
            published(url, root / name, at) for url, name, at in zip(writers, names, stores, strict=True)
        ]
        child, stopped = stack.enter_context(process(root / "child", stores[0]))
        other = served("other", follow=stores[1], follow_seconds=0.05)
        relays.append(stack.enter_context(relay(other)))
        shards = f"{relays[0].url}|{child},{relays[1].url}|{relays[2].url}"
        app = create_router_app(Settings(data=root / "router", shards=shards), tiny)
        router = stack.enter_context(real_server(app))

        def publish() -> None:
            for url, name, at, follower in zip(writers, names, stores, (child, other), strict=True):
                count = published(url, root / name, at)
                until(lambda: stats(follower)["documents"] == count)  # noqa: B023 - called here

        assert sum(counts) == 40
        servers = app.state.runtime.collections._shards.fleet.servers
        yield Replicated(router, one, servers, relays, stopped, publish)


@pytest.fixture
def sound(replicated: Replicated) -> Iterator[Replicated]:
    """Where all answer and have the same; whatever a test lost is there again behind."""
    yield replicated
    for each in replicated.relays:
        each.fault, each.ends_at = "none", None
    replicated.stopped.send_signal(signal.SIGCONT)
    for server in (WRITERS, FOLLOWERS):  # circuits close again
        for shard in replicated.servers:
            shard.clients[server].server.circuit.answered()


@pytest.mark.parametrize("server", [WRITERS, FOLLOWERS])
def test_answers_are_those_of_one_server(sound: Replicated, server: int) -> None:
    sound.prefer(server)
    sound.require_same()


@pytest.mark.parametrize("fault", get_args(Fault)[1:])
@pytest.mark.parametrize("lost", [0, 2])
def test_another_one_answers_where_one_is_lost(sound: Replicated, fault: Fault, lost: int) -> None:
    sound.prefer(FOLLOWERS if lost == 2 else WRITERS)
    sound.relays[lost].fault = fault
    seconds = SOON_SECONDS if fault == "silent" else LATER_SECONDS
    sound.require_same(seconds)
    answer = sound.search(seconds, allow_partial=True)
    assert "partial" not in answer.json()


def test_a_stopped_process_is_not_waited_for(sound: Replicated) -> None:
    sound.prefer(FOLLOWERS)
    sound.stopped.send_signal(signal.SIGSTOP)
    for _ in range(4):
        sound.require_same(SOON_SECONDS)


@pytest.mark.parametrize("operation", [b"/hits?", b"/hits ", b"/candidates"])
@pytest.mark.parametrize("lost", [0, 2])
def test_a_search_begins_anew_where_a_server_is_lost_meanwhile(
    sound: Replicated, lost: int, operation: bytes
) -> None:
    sound.prefer(FOLLOWERS if lost == 2 else WRITERS)
    sound.relays[lost].ends_at = operation
    sound.require_same()


def test_documents_are_read_where_the_writing_server_is_lost(sound: Replicated) -> None:
    sound.prefer(WRITERS)
    sound.relays[0].fault = "closed"
    base = f"{sound.router}/collections/demo"
    with httpx.Client() as client:
        listed = client.get(f"{base}/documents?limit=100").json()["documents"]
        assert len(listed) == 40
        assert client.post(f"{base}/documents/count").json() == {"count": 40}
        for document in listed[:8]:
            assert client.get(f"{base}/documents/{document['id']}").json()["text"] == document["text"]
        assert client.get(f"{sound.router}/collections").json()["collections"][0]["documents"] == 40


def test_writes_are_of_the_writing_server_alone(sound: Replicated) -> None:
    sound.prefer(FOLLOWERS)
    for url in (sound.router, sound.one):
        written(url, range(40, 50))
    sound.publish()
    sound.prefer(FOLLOWERS)
    time.sleep(FRESH_SECONDS)  # until what was known of terms is asked for again
    sound.require_same()


def test_a_replica_may_be_behind(sound: Replicated) -> None:
    before = hits(sound.search(top_k=100))
    position = written(sound.router, range(50, 60))["position"]
    sound.prefer(FOLLOWERS)
    assert {id for id, *_ in hits(sound.search(top_k=100))} == {id for id, *_ in before}
    newest = sound.search(top_k=100, min_position=position)
    written(sound.one, range(50, 60))
    assert hits(newest) == hits(asked(sound.one, query="hot tea", top_k=100))
    sound.prefer(WRITERS)
    sound.require_same()
    sound.publish()


def test_a_page_is_of_the_servers_that_have_its_snapshot(sound: Replicated) -> None:
    before = hits(sound.search(top_k=8))
    position = written(sound.router, range(60, 70))["position"]
    written(sound.one, range(60, 70))
    after = hits(sound.search(top_k=8, min_position=position))
    assert before != after
    for first, second in ((FOLLOWERS, WRITERS), (WRITERS, FOLLOWERS)):
        sound.prefer(first)
        page, whole = sound.search(top_k=4), hits(sound.search(top_k=8))
        sound.prefer(second)
        later = sound.search(top_k=4, offset=4, snapshot=page.json()["snapshot"])
        assert later.json()["snapshot"] == page.json()["snapshot"]
        assert hits(page) + hits(later) == whole
        expected = before if first == FOLLOWERS else after  # by the terms of the writing servers
        assert {id for id, *_ in whole} == {id for id, *_ in expected}
    for version in ("a,b", "a", "a,b,c"):  # the last two of other numbers of shards
        gone = sound.search(top_k=4, offset=4, snapshot=version)
        assert (gone.status_code, gone.json()["error"]["code"]) == (409, "snapshot_gone")
    sound.publish()
    sound.require_same()


def test_a_replica_that_has_not_got_a_collection_is_passed_over(sound: Replicated) -> None:
    sound.prefer(FOLLOWERS)
    base = f"{sound.router}/collections/later"
    assert httpx.put(base, json={}).status_code == 201
    written(sound.router, range(20), "later")
    sound.prefer(FOLLOWERS)
    assert len(hits(sound.search(collection="later"))) == 20
    assert httpx.post(f"{base}/documents/count").json() == {"count": 20}
    assert httpx.delete(base).status_code == 204
    assert sound.search(collection="later").status_code == 404


def test_a_replica_with_older_settings_is_passed_over(sound: Replicated) -> None:
    fields = {"fields": {"year": "integer"}}
    for url in (sound.router, sound.one):
        assert httpx.post(f"{url}/collections/demo/fields", json=fields).is_success
    sound.prefer(FOLLOWERS)
    filter = {"not": {"exists": "year"}}
    found, expected = (asked(url, **QUERIES[0], filter=filter) for url in (sound.router, sound.one))
    assert found.status_code == 200, found.text
    assert hits(found) == hits(expected)
    sound.publish()


def test_it_is_counted(sound: Replicated) -> None:
    sound.prefer(WRITERS)
    sound.relays[0].fault = "closed"
    before = _failovers(sound)
    sound.require_same()
    assert _failovers(sound) > before


def _failovers(replicated: Replicated) -> float:
    lines = httpx.get(f"{replicated.router}/metrics").text.splitlines()
    name = f'tercet_shard_failovers_total{{shard="{replicated.relays[0].url}"}} '
    return next(float(line.removeprefix(name)) for line in lines if line.startswith(name))
