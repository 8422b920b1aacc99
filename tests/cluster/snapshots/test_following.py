"""A server that follows: always at a whole snapshot, the newest that it could have, and read only."""

from __future__ import annotations

import logging
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tercet.cluster.objects.folder import FolderStore
from tercet.cluster.objects.store import ObjectStore
from tercet.cluster.snapshots.followed import FILE
from tercet.cluster.snapshots.following import Follower
from tercet.cluster.snapshots.published import file_path
from tercet.cluster.snapshots.pushing import push
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.collection import Collection
from tercet.index.errors import CollectionBusyError
from tercet.index.live.collection import LiveCollection
from tercet.index.verify import verify
from tercet.service.app import create_app
from tercet.service.collections.registry import CollectionRegistry
from tercet.service.settings.settings import Settings
from tests.cluster.snapshots.conftest import Publish
from tests.service.conftest import real_server


@contextmanager
def following(url: str, data: Path) -> Iterator[Follower]:
    follower = Follower(url, data)
    try:
        yield follower
    finally:
        follower.close()


@contextmanager
def follows(url: str, data: Path, encoder: Any) -> Iterator[str]:
    """The address of a server that follows a URL."""
    settings = Settings(
        data=data, follow=url, follow_seconds=0.02, batch_tokens=64, queue_tokens=4096, max_wait_seconds=60
    )
    with real_server(create_app(settings, encoder, following=Follower(url, data))) as address:
        yield address


def ids_found(address: str) -> set[str]:
    body = {"collection": "demo", "query": "green tea train steam leaf", "top_k": 50}
    answer = httpx.post(f"{address}/search", json=body)
    assert answer.status_code == 200, answer.text
    return {hit["id"] for hit in answer.json()["hits"]}


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_it_takes_up_each_newer_snapshot(
    published: FolderStore,
    publish: Publish,
    other: Path,
    registry: CollectionRegistry,
    demo: Collection,
    answers: Any,
) -> None:
    with following(published.url, other) as follower:
        assert not follower.ready
        follower.look(registry)
        assert follower.ready
        first = registry.snapshot("demo")
        assert (first.name, first.documents) == ("000001", 5)
        assert answers(first) == answers(demo.snapshot())
        status = (registry.root / "demo/LOCK").stat()  # known as verified, as what was fetched is
        note = (registry.root / "demo/VERIFIED").read_text()
        assert note == f"{status.st_ino} {status.st_ctime_ns}\n"
        publish("new", without=("tea",))
        follower.look(registry)
        second = registry.snapshot("demo")
        assert (second.name, second.documents) == ("000002", 5)
        assert answers(second) == answers(demo.snapshot())
        assert first.documents == 5  # who still searches it may
        shared = first.published_segments().keys() & second.published_segments().keys()
        assert shared
        assert verify(registry.root, "demo") == []
        (kept,) = (registry.root / "demo" / "manifests").iterdir()  # what only the former had is gone
        assert kept.name == "000002.json"
        follower.look(registry)
        assert registry.snapshot("demo") is second
        ((name, age),) = follower.ages()
        assert (name, age >= 0) == ("demo", True)
        assert follower.silence_seconds < 60


def test_no_search_opens_what_was_switched_to(
    published: FolderStore,
    publish: Publish,
    other: Path,
    registry: CollectionRegistry,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with following(published.url, other) as follower:
        follower.look(registry)
        publish("new")
        follower.look(registry)
        monkeypatch.setattr(Collection, "snapshot", lambda *_: pytest.fail("it is opened by a search"))
        assert registry.snapshot("demo").documents == 6


def test_what_was_there_already_is_not_fetched(
    published: FolderStore, publish: Publish, other: Path, registry: CollectionRegistry
) -> None:
    with following(published.url, other) as follower:
        follower.look(registry)
        kept = Collection.open(registry.root, "demo").manifest()
        assert kept is not None
        publish("new")
        for entry in kept.segments:
            for each in entry.files.values():
                published.delete([file_path(each.sha256)])
        follower.look(registry)
        assert registry.snapshot("demo").documents == 6


def test_settings_that_changed_come_along(
    published: FolderStore,
    demo: Collection,
    root: Path,
    stages: Path,
    other: Path,
    registry: CollectionRegistry,
    build: Any,
    tiny: Any,
) -> None:
    with following(published.url, other) as follower:
        follower.look(registry)
        with LiveCollection(demo) as live:
            live.declare({"lang": "keyword"})
        push(Collection.open(root, "demo"), published, stages)
        follower.look(registry)
        assert registry.snapshot("demo").settings.fields["lang"] == "keyword"
        assert registry.describe("demo").settings.fields["lang"] == "keyword"
        shutil.rmtree(root / "demo")
        build(root.parent, tiny, bm25=True)  # another collection of the same name
        push(Collection.open(root, "demo"), published, stages, force=True)
        follower.look(registry)
        assert registry.snapshot("demo").settings.bm25
        assert (registry.snapshot("demo").name, verify(registry.root, "demo")) == ("000003", [])


def test_a_collection_of_its_own_is_left_alone(
    published: FolderStore, data: Path, demo: Collection, caplog: pytest.LogCaptureFixture
) -> None:
    registry = CollectionRegistry(data / "collections")
    with following(published.url, data) as follower, caplog.at_level(logging.ERROR, logger="tercet"):
        follower.look(registry)
        assert not follower.ready
        assert "has a collection 'demo' of its own" in caplog.text
        with LiveCollection(demo):
            pass
    registry.close()


def test_nobody_writes_what_is_followed(
    published: FolderStore, other: Path, registry: CollectionRegistry
) -> None:
    with following(published.url, other) as follower:
        follower.look(registry)
        with pytest.raises(CollectionBusyError), LiveCollection(Collection.open(registry.root, "demo")):
            pass
    with LiveCollection(Collection.open(registry.root, "demo")):
        pass


@pytest.mark.parametrize("sides", [("dense",), ("sparse", "colbert"), ("colbert",)])
def test_encoders_that_lack_sides_are_followed(
    root: Path,
    folder: ObjectStore,
    stages: Path,
    other: Path,
    registry: CollectionRegistry,
    tiny: Any,
    sides: Any,
) -> None:
    info = type(tiny)(sides=sides).info
    settings = CollectionSettings(
        "few",
        "tiny",
        info.fingerprint,
        info.dense_dimension,
        info.colbert_dimension,
        info.vocabulary_size,
        token_codec="int8" if "colbert" in sides else "none",
        bm25=True,
    )
    push(Collection.create(root, "few", settings), folder, stages)
    with following(folder.url, other) as follower:
        follower.look(registry)
        assert (follower.ready, registry.snapshot("few").documents) == (True, 0)


def test_what_says_nothing_of_its_snapshot_is_told(
    published: FolderStore, other: Path, registry: CollectionRegistry, caplog: pytest.LogCaptureFixture
) -> None:
    with following(published.url, other) as follower:
        follower.look(registry)
    for content in ("{}", "[]", '{"url": 1, "number": "x", "pushed": 3}'):
        (registry.root / "demo" / FILE).write_text(content)
        with following(published.url, other) as follower, caplog.at_level(logging.ERROR, logger="tercet"):
            follower.look(registry)
            assert not follower.ready
            assert "is then fetched again" in caplog.messages[-1]


def test_several_collections_below_one_url(
    demo: Collection,
    folder: ObjectStore,
    root: Path,
    stages: Path,
    other: Path,
    tiny: Any,
    build: Any,
    registry: CollectionRegistry,
) -> None:
    build(root.parent, tiny, "tales")
    push(demo, folder.below("demo"), stages)
    with following(folder.url, other) as follower:
        follower.look(registry)
        assert registry.names() == ["demo"]
        push(Collection.open(root, "tales"), folder.below("tales-of-mine"), stages)
        follower.look(registry)
        assert registry.names() == ["demo", "tales"]
        assert [name for name, _ in follower.ages()] == ["demo", "tales"]


def test_a_server_follows_and_changes_nothing(
    published: FolderStore, publish: Publish, other: Path, tiny: Any
) -> None:
    with follows(published.url, other, tiny) as address:
        assert ids_found(address) == {"tea", "rail", "steam/engine", "leaf", "black"}
        publish("new", without=("rail",))
        until(lambda: "new" in ids_found(address))
        assert ids_found(address) == {"tea", "new", "steam/engine", "leaf", "black"}
        for method, path, body in (
            ("PUT", "/collections/demo/documents", {"documents": [{"id": "x", "text": "x"}]}),
            ("DELETE", "/collections/demo", None),
            ("PUT", "/aliases/latest", {"collection": "demo"}),
            ("POST", "/collections/demo/backups", None),
        ):
            answer = httpx.request(method, f"{address}{path}", json=body)
            assert (answer.status_code, answer.json()["error"]["code"]) == (403, "read_only_server"), path
        metrics = httpx.get(f"{address}/metrics").text
        assert 'tercet_followed_snapshot_age_seconds{collection="demo"}' in metrics
        assert "tercet_follow_silence_seconds" in metrics


@pytest.mark.slow
def test_searches_go_on_while_snapshots_switch(
    published: FolderStore, publish: Publish, other: Path, tiny: Any
) -> None:
    allowed = [
        {"tea", "rail", "steam/engine", "leaf", "black"} | {f"new{n}" for n in range(m)} for m in range(7)
    ]
    seen: list[set[str]] = []
    with follows(published.url, other, tiny) as address:
        ended = threading.Event()

        def search() -> None:
            while not ended.is_set():
                seen.append(ids_found(address))

        searching = [threading.Thread(target=search) for _ in range(2)]
        for thread in searching:
            thread.start()
        for number in range(6):
            publish(f"new{number}")
        until(lambda: bool(seen) and seen[-1] == allowed[-1])
        ended.set()
        for thread in searching:
            thread.join(30)
    assert all(each in allowed for each in seen)


@pytest.mark.slow
def test_it_starts_once_something_is_published(
    demo: Collection, folder: FolderStore, stages: Path, other: Path, tiny: Any
) -> None:
    timer = threading.Timer(0.5, lambda: push(demo, folder, stages))
    timer.start()
    with follows(folder.url, other, tiny) as address:
        assert "tea" in ids_found(address)
    timer.join()
