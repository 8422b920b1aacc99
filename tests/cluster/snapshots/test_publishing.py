"""A server that publishes: each collection that changed, once, and whatever the store does it serves on."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tercet.cluster.objects.folder import FolderStore
from tercet.cluster.objects.store import ObjectStore
from tercet.cluster.snapshots.followed import Followed
from tercet.cluster.snapshots.published import (
    MANIFESTS,
    manifest_path,
    newest_number,
    newest_published,
    number_of,
)
from tercet.cluster.snapshots.publishing import Publisher
from tercet.cluster.snapshots.pulling import pull
from tercet.cluster.snapshots.pushing import push
from tercet.index.collection import Collection
from tercet.index.verify import verify
from tercet.service.app import create_app
from tercet.service.collections.registry import CollectionRegistry
from tercet.service.exceptions import SettingsError
from tercet.service.settings.settings import Settings
from tests.cluster.snapshots.test_following import follows, ids_found, until
from tests.service.conftest import real_server


@pytest.fixture
def registry(root: Path) -> Iterator[CollectionRegistry]:
    found = CollectionRegistry(root)
    yield found
    found.close()


@contextmanager
def publishes(url: str, data: Path, encoder: Any, **settings: Any) -> Iterator[str]:
    """The address of a server that publishes below a URL."""
    made = Settings(data=data, publish_url=url, publish_seconds=0.02, max_wait_seconds=60, **settings)
    with real_server(create_app(made, encoder, publishing=Publisher(url, data))) as address:
        yield address


def put(address: str, *ids: str) -> None:
    documents = [{"id": id, "text": f"green tea {id}"} for id in ids]
    answer = httpx.put(f"{address}/collections/demo/documents", json={"documents": documents}, timeout=60)
    assert answer.status_code == 200, answer.text


@pytest.mark.slow
def test_what_changed_is_published_and_what_did_not_is_not(
    registry: CollectionRegistry,
    data: Path,
    store: ObjectStore,
    demo: Collection,
    root: Path,
    build: Any,
    tiny: Any,
    write: Any,
    caplog: pytest.LogCaptureFixture,
) -> None:
    build(data, tiny, "tales")
    demo, tales = store.below("demo"), store.below("tales")
    publisher = Publisher(store.url, data)
    with caplog.at_level(logging.INFO, logger="tercet"):
        for _ in range(2):
            publisher.look(registry)
        assert (newest_number(demo), newest_number(tales)) == (1, 1)
        write(Collection.open(root, "demo"), "new")
        publisher.look(registry)
    assert (newest_number(demo), newest_number(tales)) == (2, 1)
    assert sum("is published as snapshot" in line for line in caplog.messages) == 3
    assert [name for name, _ in publisher.silences()] == ["demo", "tales"]
    assert list(publisher.failures()) == [("demo", 0), ("tales", 0)]
    Publisher(store.url, data).look(registry)  # as after a restart
    assert (newest_number(demo), newest_number(tales)) == (2, 1)
    registry.delete("tales")
    publisher.look(registry)
    assert [name for name, _ in publisher.silences()] == ["demo"]
    assert newest_number(tales) == 1


def test_settings_of_searches_are_published_too(
    registry: CollectionRegistry, data: Path, folder: FolderStore, demo: Collection
) -> None:
    publisher = Publisher(folder.url, data)
    publisher.look(registry)
    with registry.writing("demo") as live:
        live.declare({"lang": "keyword"})
    publisher.look(registry)
    found = newest_published(folder.below("demo"))
    assert found is not None
    assert found.number == 2


@pytest.mark.slow
def test_acknowledged_writes_reach_who_follows(
    data: Path, store: ObjectStore, other: Path, tiny: Any
) -> None:
    with publishes(store.url, data, tiny) as writer, follows(store.url, other, tiny) as reader:
        put(writer, "new")
        until(lambda: "new" in ids_found(reader))
        httpx.delete(f"{writer}/collections/demo/documents/tea", timeout=60).raise_for_status()
        until(lambda: "tea" not in ids_found(reader))
        metrics = httpx.get(f"{writer}/metrics").text
        assert 'tercet_publish_silence_seconds{collection="demo"}' in metrics
        assert 'tercet_publish_failures_total{collection="demo"} 0.0' in metrics


def test_a_store_that_fails_disturbs_no_one(data: Path, tmp_path: Path, tiny: Any) -> None:
    blocked = tmp_path / "blocked"
    blocked.write_text("a file, where a folder is wanted")
    with publishes(blocked.as_uri(), data, tiny) as address:
        put(address, "new")

        def failures() -> int:
            lines = httpx.get(f"{address}/metrics").text.splitlines()
            (line,) = [line for line in lines if line.startswith("tercet_publish_failures_total{")]
            return int(float(line.rpartition(" ")[2]))

        until(lambda: failures() > 2)
        assert httpx.get(f"{address}/ready").status_code == 200
        assert "new" in ids_found(address)
        blocked.unlink()
        until(lambda: newest_number(FolderStore(blocked / "demo")) > 0)


def test_a_failure_is_said_once_and_the_silence_lasts(
    registry: CollectionRegistry,
    data: Path,
    folder: FolderStore,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 100.0
    monkeypatch.setattr("tercet.cluster.snapshots.publishing.time.monotonic", lambda: now)
    publisher = Publisher(folder.url, data)
    publisher.look(registry)
    place = Path(folder.url.removeprefix("file://"))
    place.rename(place.with_name("elsewhere"))
    place.write_text("")
    now = 130.0
    for _ in range(3):
        publisher.look(registry)
    assert [record.levelno for record in caplog.records].count(logging.ERROR) == 1
    assert list(publisher.silences()) == [("demo", 30.0)]
    assert list(publisher.failures()) == [("demo", 3)]
    place.unlink()  # the store is there again, without what it had
    publisher.look(registry)
    assert newest_number(folder.below("demo")) == 1
    assert list(publisher.silences()) == [("demo", 0.0)]


def test_what_changed_during_a_push_is_published_by_the_next_look(
    registry: CollectionRegistry, data: Path, folder: FolderStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_file, declared = FolderStore.put_file, threading.Event()

    def put(self: FolderStore, *file: Any) -> None:
        if not declared.is_set():
            declared.set()
            with registry.writing("demo") as live:
                live.declare({"lang": "keyword"})
        put_file(self, *file)

    monkeypatch.setattr(FolderStore, "put_file", put)
    publisher = Publisher(folder.url, data)
    numbers = []
    for _ in range(3):
        publisher.look(registry)
        numbers.append(newest_number(folder.below("demo")))
    assert numbers == [1, 2, 2]


def test_what_is_written_during_a_push_is_silent_since_its_beginning(
    registry: CollectionRegistry, data: Path, folder: FolderStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, put_file, turn = 100.0, FolderStore.put_file, threading.Lock()

    def slowly(self: FolderStore, path: str, source: Path, sha256: str, moved: Any) -> None:
        nonlocal now
        with turn:
            now += 1
        put_file(self, path, source, sha256, moved)

    monkeypatch.setattr("tercet.cluster.snapshots.publishing.time.monotonic", lambda: now)
    monkeypatch.setattr(FolderStore, "put_file", slowly)
    publisher = Publisher(folder.url, data)
    publisher.look(registry)
    assert now > 100
    assert list(publisher.silences()) == [("demo", now - 100)]


def test_older_snapshots_go_once_a_day(
    registry: CollectionRegistry,
    data: Path,
    folder: FolderStore,
    root: Path,
    other: Path,
    write: Any,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, store = 100.0, folder.below("demo")
    monkeypatch.setattr("tercet.cluster.snapshots.publishing.time.monotonic", lambda: now)

    def numbers_after_days(days: int) -> set[int | None]:
        """Of the snapshots there after a look, before which all of the store became so much older."""
        nonlocal now
        now += 24 * 3600 * days
        for path in Path(folder.url.removeprefix("file://")).rglob("*"):
            if path.is_file():
                os.utime(path, times=(path.stat().st_mtime - 24 * 3600 * days,) * 2)
        publisher.look(registry)
        return {number_of(each.path) for each in store.list(MANIFESTS)}

    publisher = Publisher(folder.url, data, keep=1)
    assert numbers_after_days(0) == {1}
    write(Collection.open(root, "demo"), "new")
    assert numbers_after_days(0) == {1, 2}
    now += 24 * 3600
    assert numbers_after_days(0) == {1, 2}  # a day has gone here, and by the store's clock they are young
    now -= 24 * 3600
    assert numbers_after_days(1) == {1, 2}  # older than a day, but no day has gone since the start
    assert numbers_after_days(2) == {2}
    pull(other / "collections", "demo", store, other / "snapshots")
    assert verify(other / "collections", "demo") == []
    newest = Path(store.url.removeprefix("file://"), manifest_path(2))
    newest.write_text("{")
    assert numbers_after_days(2) == {2}
    assert "older snapshots of collection demo stay for another day" in caplog.text
    assert list(publisher.failures()) == [("demo", 0)]


def test_of_two_servers_that_publish_at_one_place_one_does(
    data: Path, root: Path, folder: FolderStore, other: Path, build: Any, tiny: Any, write: Any
) -> None:
    build(other, tiny)
    roots = (root, other / "collections")
    publishers = [Publisher(folder.url, path.parent) for path in roots]
    registries = [CollectionRegistry(path) for path in roots]
    for number, path in enumerate(roots):
        write(Collection.open(path, "demo"), f"of-{number}")
    for _ in range(2):
        looks = [
            threading.Thread(target=publisher.look, args=(registry,))
            for publisher, registry in zip(publishers, registries, strict=True)
        ]
        for look in looks:
            look.start()
        for look in looks:
            look.join(60)
    assert newest_number(folder.below("demo")) == 1
    assert sorted(count for publisher in publishers for _, count in publisher.failures()) == [0, 2]
    for registry in registries:
        registry.close()


def test_a_place_of_one_collection_is_refused(
    registry: CollectionRegistry,
    data: Path,
    folder: FolderStore,
    demo: Collection,
    stages: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    push(demo, folder, stages)
    publisher = Publisher(folder.url, data)
    with caplog.at_level(logging.ERROR, logger="tercet"):
        publisher.look(registry)
    assert "has snapshots of one collection" in caplog.text
    assert newest_number(folder.below("demo")) == 0


def test_what_follows_another_place_is_not_published(
    registry: CollectionRegistry, data: Path, folder: FolderStore, root: Path
) -> None:
    Followed(f"{folder.url}/elsewhere", 1, "2026-01-01T00:00:00Z").write(root / "demo")
    publisher = Publisher(folder.url, data)
    publisher.look(registry)
    assert list(publisher.silences()) == []
    assert folder.folders() == []


def test_a_publication_ends_with_the_server_and_goes_on_at_the_next_start(
    registry: CollectionRegistry,
    data: Path,
    folder: FolderStore,
    other: Path,
    answers: Callable[..., Any],
    demo: Collection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    publisher, place = Publisher(folder.url, data), folder.below("demo")
    put_file, turn = FolderStore.put_file, threading.Lock()

    def put_one(self: FolderStore, path: str, source: Path, sha256: str, moved: Any) -> None:
        with turn:
            put_file(self, path, source, sha256, moved)
            publisher._ended = True

    monkeypatch.setattr(FolderStore, "put_file", put_one)
    publisher.look(registry)
    monkeypatch.undo()
    publisher.close()
    sent = {each.path for each in place.list("files")}
    assert len(sent) == 1
    assert newest_number(place) == 0
    publisher.look(registry)
    assert newest_number(place) == 0
    Publisher(folder.url, data).look(registry)
    assert sent <= {each.path for each in place.list("files")}
    pull(other / "collections", "demo", place, other / "snapshots")
    assert answers(Collection.open(other / "collections", "demo").snapshot()) == answers(demo.snapshot())


def test_a_collection_that_nobody_writes_to_is_still_closed(
    registry: CollectionRegistry, data: Path, folder: FolderStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with registry.writing("demo") as live:
        live.flush()
    monkeypatch.setattr("tercet.service.collections.live.IDLE_SECONDS", 0.0)
    opened = registry._live.get("demo")
    assert opened is not None
    used = opened.used
    Publisher(folder.url, data).look(registry)
    assert opened.used == used


def test_one_who_follows_publishes_nothing(data: Path, folder: FolderStore) -> None:
    for other_place in ({"follow": folder.url}, {"shards": ("http://127.0.0.1:1",)}):
        for setting in ("publish_url", "snapshot_store"):
            with pytest.raises(SettingsError, match=f"{setting} publishes a server's own collections"):
                Settings(data=data, **{setting: folder.url}, **other_place)
