"""Open collections: caching, publication by others, deletion, and many threads."""

import asyncio
import errno
import os
import shutil
import threading
import weakref
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tercet.index.candidates import Document
from tercet.index.collection import Collection, delete_collection
from tercet.index.errors import (
    CollectionBusyError,
    CollectionExistsError,
    CollectionNotFoundError,
    DamagedIndexError,
    InvalidNameError,
)
from tercet.index.live.collection import LiveCollection
from tercet.models.encoder import Encoder, encode
from tercet.service.collections.registry import CollectionRegistry
from tests.service.polling import pause


@pytest.fixture
def registry(data: Path) -> CollectionRegistry:
    return CollectionRegistry(data / "collections")


def publish(root: Path, encoder: Encoder, *ids: str) -> str:
    """Replaces what `demo` holds, as another process would."""
    with Collection.open(root, "demo").writer() as writer:
        documents = [Document(each, f"tea {each}") for each in ids]
        writer.add(documents, encode(encoder, [document.text for document in documents]))
        return writer.publish()


def test_a_snapshot_stays_open_until_another_is_published(registry: CollectionRegistry, tiny: Any) -> None:
    first = registry.snapshot("demo")
    assert registry.snapshot("demo") is first
    name = publish(registry.root, tiny, "x", "y")
    second = registry.snapshot("demo")
    assert (second.name, second.documents) == (name, 2)
    query = encode(tiny, ["tea"], "query")
    assert len(first.search(query).hits) == 5  # a search under way still sees the old one
    assert {hit.document.id for hit in second.search(query).hits} == {"x", "y"}


def test_a_superseded_snapshot_is_freed_with_its_last_search(registry: CollectionRegistry, tiny: Any) -> None:
    held = registry.snapshot("demo")
    freed = weakref.ref(held)
    publish(registry.root, tiny, "x")
    registry.snapshot("demo")
    assert freed() is held
    del held
    assert freed() is None


def test_segments_that_stay_are_not_opened_again(registry: CollectionRegistry, tiny: Any) -> None:
    first, collection = registry.snapshot("demo"), Collection.open(registry.root, "demo")
    with LiveCollection(collection) as live:
        live.put([Document("x", "tea x")], encode(tiny, ["tea x"]))
        live.flush()
    second = registry.snapshot("demo")
    assert second.documents == 6
    assert second.published_segments().keys() > first.published_segments().keys()
    assert all(second.published_segments()[id] is kept for id, kept in first.published_segments().items())
    # The same segments with other settings are read in another way.
    manifest, settings = collection.manifest(), replace(collection.settings, encoder="another")
    assert manifest is not None
    settings.write(collection.layout.settings)
    replace(manifest, settings_sha256=settings.sha256).write(collection.layout.manifest(manifest.name))
    third = registry.snapshot("demo")
    assert third.published_segments().keys() == second.published_segments().keys()
    assert all(third.published_segments()[id] is not old for id, old in second.published_segments().items())


def is_mapped(folder: Path) -> bool:
    """Whether this process has files below the folder open in its memory."""
    return str(folder) in Path("/proc/self/maps").read_text()


def test_what_another_process_removed_is_let_go(registry: CollectionRegistry) -> None:
    freed = weakref.ref(registry.snapshot("demo"))
    shutil.rmtree(registry.root / "demo")
    assert is_mapped(registry.root)
    registry.release_superseded()
    assert freed() is None
    assert not is_mapped(registry.root)


def test_what_another_process_replaced_is_let_go_without_a_search(
    registry: CollectionRegistry, tiny: Any
) -> None:
    kept, freed = registry.snapshot("demo"), weakref.ref(registry.snapshot("demo"))
    registry.release_superseded()
    assert registry.snapshot("demo") is kept
    del kept
    publish(registry.root, tiny, "x")
    registry.release_superseded()
    assert freed() is None
    assert registry.snapshot("demo").documents == 1


async def test_a_server_lets_go_by_itself(
    make_client: Any, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tercet.service.runtime.RELEASE_SECONDS", 0.05)
    async with make_client() as client:
        assert (await client.post("/search", json={"collection": "demo", "query": "tea"})).status_code == 200
        assert is_mapped(data)
        delete_collection(data / "collections", "demo")  # as another process does
        async with asyncio.timeout(20):
            while is_mapped(data):
                await pause()


def test_describe_list_and_create(registry: CollectionRegistry) -> None:
    settings = registry.describe("demo").settings
    with pytest.raises(CollectionExistsError):
        registry.create("demo", settings)
    created = registry.create("another", _renamed(settings, "another"))
    assert (created.snapshot, created.documents) == (None, 0)
    assert registry.snapshot("another").documents == 0
    listed = [(each.settings.name, each.snapshot, each.documents) for each in registry.list()]
    assert listed == [("another", None, 0), ("demo", "000001", 5)]


def test_deleted_and_created_again_is_another_collection(registry: CollectionRegistry, tiny: Any) -> None:
    settings = registry.snapshot("demo").settings
    delete_collection(registry.root, "demo")  # by another process
    with pytest.raises(CollectionNotFoundError):
        registry.snapshot("demo")
    registry.create("demo", settings)
    assert publish(registry.root, tiny, "z") == "000001"  # the name the first one had
    assert registry.snapshot("demo").documents == 1
    registry.delete("demo")
    with pytest.raises(CollectionNotFoundError):
        registry.describe("demo")


@pytest.mark.parametrize("call", ["snapshot", "describe", "delete"])
@pytest.mark.parametrize("name", ["../demo", "", "Demo", "a" * 65, "demo/../demo", "demo\n"])
def test_names_never_become_paths(registry: CollectionRegistry, call: str, name: str) -> None:
    with pytest.raises(InvalidNameError):
        getattr(registry, call)(name)


def test_a_collection_being_built_cannot_be_deleted(registry: CollectionRegistry) -> None:
    with (
        Collection.open(registry.root, "demo").writer(),
        pytest.raises(CollectionBusyError),
    ):
        registry.delete("demo")
    assert registry.describe("demo").documents == 5


def test_a_damaged_collection_does_not_hide_the_others(registry: CollectionRegistry) -> None:
    registry.create("another", _renamed(registry.describe("demo").settings, "another"))
    (registry.root / "demo" / "CURRENT").write_text("nonsense")
    assert [each.settings.name for each in registry.list()] == ["another"]


def test_a_description_opens_no_arrays(registry: CollectionRegistry) -> None:
    (arrays,) = (registry.root / "demo" / "segments").glob("*/*")
    arrays.unlink()
    assert registry.describe("demo").documents == 5
    with pytest.raises(DamagedIndexError):
        registry.snapshot("demo")


def test_what_is_open_is_searched_while_the_folder_cannot_be_read(
    registry: CollectionRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = registry.snapshot("demo")

    def unreadable(_path: str) -> os.stat_result:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr("tercet.index.files.versions.os.stat", unreadable)
    assert registry.snapshot("demo") is opened


@pytest.mark.slow
def test_searches_see_the_old_or_the_new_snapshot_never_a_mix(
    registry: CollectionRegistry, tiny: Any
) -> None:
    """Three threads search while eight snapshots are published; snapshot n holds n documents."""
    for _ in range(4):  # so that the numbers of documents and snapshots agree from 000005 on
        publish(registry.root, tiny, "a", "b", "c", "d", "e")
    query = encode(tiny, ["tea"], "query")
    stop = threading.Event()
    faults: list[str] = []

    def search() -> None:
        while not stop.is_set():
            snapshot = registry.snapshot("demo")
            hits = snapshot.search(query, top_k=100).hits
            if not int(snapshot.name) == snapshot.documents == len(hits):
                faults.append(f"{snapshot.name}: {snapshot.documents} documents, {len(hits)} hits")

    threads = [threading.Thread(target=_noting(search, faults)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for count in range(6, 14):
        assert int(publish(registry.root, tiny, *map(str, range(count)))) == count
    stop.set()
    for thread in threads:
        thread.join()
    assert faults == []


def _noting(work: Callable[[], None], faults: list[str]) -> Callable[[], None]:
    def noted() -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - the test reports whatever it is
            faults.append(repr(error))

    return noted


def _renamed(settings: Any, name: str) -> Any:
    return type(settings)(**{key: getattr(settings, key) for key in settings.__slots__} | {"name": name})


async def test_no_file_is_looked_at_on_the_event_loop(
    make_client: Any, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that hangs keeps those waiting who need it, and nobody else."""
    looked: list[tuple[int, str]] = []
    stat = os.stat

    def seen(path: Any, *args: Any, **options: Any) -> os.stat_result:
        if str(path).startswith(str(data)):
            looked.append((threading.get_ident(), str(path)))
        return stat(path, *args, **options)

    async with make_client() as client:
        assert (await client.put("/aliases/live", json={"collection": "demo"})).status_code == 200
        monkeypatch.setattr(os, "stat", seen)
        for name in ("demo", "live"):
            query = {"collection": name, "query": "tea"}
            assert (await client.post("/search", json=query)).status_code == 200
            again = {"query": "tea", "inputs": ["tea"], "collection": name}
            assert (await client.post("/rerank", json=again)).status_code == 200
            assert (await client.get(f"/collections/{name}/documents/tea")).status_code == 200
            written = {"documents": [{"id": "new", "text": "tea"}]}
            assert (await client.put(f"/collections/{name}/documents", json=written)).status_code == 200
        monkeypatch.undo()
    assert len(looked) > 20
    assert [path for thread, path in looked if thread == threading.get_ident()] == []
