"""A follower keeps what it has where the store, a snapshot or the follower itself fails."""

from __future__ import annotations

import logging
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest

from tercet.cluster.objects.folder import FolderStore
from tercet.cluster.snapshots import followed as followed_module
from tercet.cluster.snapshots import stages as stages_module
from tercet.cluster.snapshots.followed import FILE
from tercet.cluster.snapshots.following import Follower
from tercet.cluster.snapshots.published import manifest_path
from tercet.cluster.snapshots.pushing import push
from tercet.index.collection import Collection
from tercet.index.verify import verify
from tercet.service.collections.registry import CollectionRegistry
from tests.cluster.snapshots.conftest import Publish
from tests.cluster.snapshots.test_following import following, until


def test_a_damaged_snapshot_is_not_taken_up(
    published: FolderStore,
    publish: Publish,
    other: Path,
    registry: CollectionRegistry,
    caplog: pytest.LogCaptureFixture,
    demo: Collection,
) -> None:
    with following(published.url, other) as follower:
        follower.look(registry)
        former = registry.snapshot("demo")
        publish("new")
        before = {path.name for path in (Path(published.url.removeprefix("file://")) / "files").iterdir()}
        newest = demo.manifest()
        assert newest is not None
        sha256 = next(iter(newest.segments[-1].files.values())).sha256
        assert sha256 in before
        path = Path(published.url.removeprefix("file://")) / "files" / sha256
        content = path.read_bytes()
        path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        for _ in range(2):
            with caplog.at_level(logging.ERROR, logger="tercet"):
                follower.look(registry)
            assert registry.snapshot("demo") is former
        assert sum("is damaged" in line for line in caplog.messages) == 1  # said once
        path.write_bytes(content)
        follower.look(registry)
        assert registry.snapshot("demo").documents == 6


def test_a_damaged_collection_keeps_no_other_back(
    demo: Collection,
    root: Path,
    folder: FolderStore,
    stages: Path,
    other: Path,
    registry: CollectionRegistry,
    build: Any,
    tiny: Any,
    caplog: pytest.LogCaptureFixture,
) -> None:
    build(root.parent, tiny, "tales")
    push(Collection.open(root, "tales"), folder.below("tales"), stages)
    folder.below("demo").create(manifest_path(1), b"{}")  # which comes first
    with following(folder.url, other) as follower:
        with caplog.at_level(logging.ERROR, logger="tercet"):
            follower.look(registry)
        assert registry.names() == ["tales"]
        assert "demo/manifests/000001.json is no manifest" in caplog.text


def test_a_store_that_is_not_there_keeps_what_was(
    published: FolderStore,
    publish: Publish,
    other: Path,
    registry: CollectionRegistry,
    caplog: pytest.LogCaptureFixture,
) -> None:
    with following(published.url, other) as follower:
        follower.look(registry)
    folder = Path(published.url.removeprefix("file://"))
    folder.rename(folder.with_name("elsewhere"))
    with following(published.url, other) as follower:
        with caplog.at_level(logging.ERROR, logger="tercet"):
            follower.look(registry)
        assert follower.ready  # with what was followed before
        assert registry.snapshot("demo").documents == 5
        assert "nothing is published there yet" in caplog.text
        folder.with_name("elsewhere").rename(folder)
        publish("new")
        follower.look(registry)
        assert registry.snapshot("demo").documents == 6


@pytest.mark.parametrize("moment", ["before", "middle", "after"])
def test_a_crash_while_it_switches_is_finished_without_the_store(
    published: FolderStore,
    demo: Collection,
    root: Path,
    stages: Path,
    other: Path,
    build: Any,
    tiny: Any,
    monkeypatch: pytest.MonkeyPatch,
    moment: str,
) -> None:
    first = CollectionRegistry(other / "collections")
    with following(published.url, other) as follower:
        follower.look(first)
        shutil.rmtree(root / "demo")
        build(root.parent, tiny, bm25=True)
        push(Collection.open(root, "demo"), published, stages, force=True)
        replace, replaced = followed_module._replace, []

        def crash(source: Path, target: Path) -> None:
            stop = {"before": "codebook.safetensors", "middle": "CURRENT", "after": FILE}[moment]
            if target.name == stop:
                shutil.copytree(other, other.with_name("crashed"), symlinks=True)
            replaced.append(target.name)
            replace(source, target)

        monkeypatch.setattr(followed_module, "_replace", crash)
        follower.look(first)
        assert FILE in replaced
        monkeypatch.undo()
    first.close()
    shutil.rmtree(Path(published.url.removeprefix("file://")))
    crashed = other.with_name("crashed")
    registry = CollectionRegistry(crashed / "collections")
    with following(published.url, crashed) as follower:
        follower.look(registry)
        assert follower.ready
        assert (registry.snapshot("demo").name, registry.snapshot("demo").settings.bm25) == ("000002", True)
        assert verify(registry.root, "demo") == []
    registry.close()


def test_a_kill_while_it_tidies_up_leaves_nothing_that_counts(
    published: FolderStore, publish: Publish, other: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(folder: Path) -> None:
        (folder / "CURRENT").unlink(missing_ok=True)

    registry = CollectionRegistry(other / "collections")
    with following(published.url, other) as follower:
        follower.look(registry)
        publish("new")
        monkeypatch.setattr(stages_module, "remove_folder", killed)
        follower.look(registry)
        monkeypatch.undo()
    assert list((other / "snapshots").glob(f"follow-demo/*/{FILE}"))
    with following(published.url, other) as follower:
        follower.look(registry)
        assert follower.silence_seconds < 60
        assert registry.snapshot("demo").documents == 6
        publish("newer")
        follower.look(registry)
        assert registry.snapshot("demo").documents == 7
    registry.close()


def test_a_fetch_ends_with_the_server(
    published: FolderStore, other: Path, registry: CollectionRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    follower = Follower(published.url, other)
    begun, go_on = threading.Event(), threading.Event()

    def wait(*_: Any) -> None:
        begun.set()
        assert go_on.wait(30)
        Follower._require_going(follower, 0, 0)

    monkeypatch.setattr(follower, "_require_going", wait)
    looking = threading.Thread(target=follower.look, args=(registry,))
    looking.start()
    assert begun.wait(30)
    closing = threading.Thread(target=follower.close)
    closing.start()
    until(lambda: follower._ended)
    go_on.set()
    looking.join(30)
    closing.join(30)
    assert registry.names() == []
