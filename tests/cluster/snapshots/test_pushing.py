"""A push publishes what is current, sends only what is new, and never half of it."""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tercet.cluster.objects.errors import DamagedObjectError, OverwritingStoreError, UnreachableStoreError
from tercet.cluster.objects.folder import FolderStore
from tercet.cluster.objects.store import ObjectStore
from tercet.cluster.snapshots import pushing
from tercet.cluster.snapshots.errors import (
    DamagedSnapshotError,
    OtherCollectionError,
    PublishedMeanwhileError,
)
from tercet.cluster.snapshots.published import (
    FILES,
    file_path,
    manifest_path,
    newest_number,
    newest_published,
    read_published,
)
from tercet.cluster.snapshots.pushing import push
from tercet.cluster.snapshots.record import PublishedSnapshot
from tercet.index.collection import Collection
from tercet.index.errors import CollectionBusyError, DamagedIndexError
from tercet.index.files.directory import write_atomically
from tercet.index.live.collection import LiveCollection
from tests.cluster.snapshots.test_pulling import DEFAULTS


def contents(store: ObjectStore) -> dict[str, int]:
    return {each.path: each.size_bytes for each in store.list()}


def newest(store: ObjectStore) -> PublishedSnapshot:
    found = newest_published(store)
    assert found is not None
    return found


def test_a_first_push_sends_all_of_it(demo: Collection, store: ObjectStore, stages: Path) -> None:
    progress: list[tuple[int, int]] = []
    pushed = push(demo, store, stages, lambda done, total: progress.append((done, total)))
    assert (pushed.new, pushed.published.name, pushed.published.manifest.documents) == (True, "000001", 5)
    assert pushed.sent_bytes == pushed.published.size_bytes == progress[-1][0] == progress[-1][1]
    named = {entry.sha256: entry.size_bytes for entry in pushed.published.files.values()}
    sizes = {file_path(sha256): size for sha256, size in named.items()}
    manifest = {manifest_path(1): len(pushed.published.content)}
    assert contents(store) == sizes | manifest
    assert newest(store) == pushed.published
    assert "collection.json" in pushed.published.files


def test_a_manifest_comes_after_all_that_it_names(demo: Collection, tmp_path: Path, stages: Path) -> None:
    there: list[set[str]] = []

    class Watched(FolderStore):
        def create(self, path: str, content: bytes) -> None:
            if path.startswith("manifests/"):
                there.append({each.path for each in self.list(FILES)})
            super().create(path, content)

    published = push(demo, Watched(tmp_path / "store"), stages).published
    assert there == [{file_path(entry.sha256) for entry in published.files.values()}]


def test_what_is_there_is_not_sent_again(
    demo: Collection, store: ObjectStore, stages: Path, write: Any
) -> None:
    first = push(demo, store, stages)
    again = push(demo, store, stages)
    assert (again.new, again.sent_files, again.published) == (False, 0, first.published)
    write(demo, "new", without=("tea",))
    second = push(demo, store, stages)
    assert (second.new, second.published.number) == (True, 2)
    shared = first.published.files.keys() & second.published.files.keys()
    assert shared  # the segment of before, and the settings
    changed = {e.sha256 for e in second.published.files.values()} - {
        e.sha256 for e in first.published.files.values()
    }
    assert second.sent_files == len(changed)
    assert newest_number(store) == 2


def test_what_an_interrupted_push_left_is_not_sent_again(
    demo: Collection, folder: FolderStore, stages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = push(demo, folder, stages).published
    folder.delete([manifest_path(1)])
    left = sorted(each.path for each in folder.list(FILES))
    folder.delete(left[:2])
    resumed = push(demo, folder, stages)
    assert (resumed.new, resumed.sent_files) == (True, 2)
    assert resumed.published.files == whole.files
    folder.delete([manifest_path(1)])
    monkeypatch.setattr(pushing, "LEFT_FOR", timedelta(0))  # so old that it may be collected now
    assert push(demo, folder, stages).sent_files == len(left)


def test_what_a_killed_push_linked_here_is_in_no_ones_way(
    demo: Collection, folder: ObjectStore, stages: Path
) -> None:
    shutil.copytree(demo.layout.folder, stages / "push-demo" / "collection")
    assert push(demo, folder, stages).new
    assert not (stages / "push-demo" / "collection").exists()


def test_what_was_left_damaged_is_sent_again(demo: Collection, store: ObjectStore, stages: Path) -> None:
    pushed = push(demo, store, stages).published
    entry = max(pushed.files.values(), key=lambda entry: entry.size_bytes)
    store.delete([manifest_path(1), file_path(entry.sha256)])
    store.create(file_path(entry.sha256), bytes(entry.size_bytes))
    assert push(demo, store, stages).sent_files == 1
    assert store.get(file_path(entry.sha256)) != bytes(entry.size_bytes)


def test_what_the_store_lost_since_is_repaired(demo: Collection, store: ObjectStore, stages: Path) -> None:
    pushed = push(demo, store, stages).published
    entry = max(pushed.files.values(), key=lambda entry: entry.size_bytes)
    store.delete([file_path(entry.sha256)])
    store.create(file_path(entry.sha256), bytes(entry.size_bytes))
    assert push(demo, store, stages).sent_files == 0
    repaired = push(demo, store, stages, repair=True)
    assert (repaired.new, repaired.sent_files) == (False, len({e.sha256 for e in pushed.files.values()}))
    assert store.get(file_path(entry.sha256)) != bytes(entry.size_bytes)


def test_what_the_newest_names_and_the_store_lost_goes_along(
    demo: Collection, folder: ObjectStore, stages: Path, write: Any
) -> None:
    lost = push(demo, folder, stages).published.files["collection.json"].sha256
    folder.delete([file_path(lost)])
    write(demo, "new")
    push(demo, folder, stages)
    assert folder.find(file_path(lost)) is not None


def test_of_several_who_publish_each_gets_a_number_of_its_own(
    root: Path, demo: Collection, folder: ObjectStore, tmp_path: Path, write: Any
) -> None:
    roots = [Path(shutil.copytree(root, tmp_path / f"root-{number}")) for number in range(6)]
    collections = [Collection.open(each, "demo") for each in roots]
    for number, collection in enumerate(collections):
        write(collection, f"of {number}")
    with ThreadPoolExecutor(len(roots)) as threads:
        pushed = list(
            threads.map(lambda each: push(each, folder, each.layout.folder.parent / ".stages"), collections)
        )
    assert sorted(each.published.number for each in pushed) == [1, 2, 3, 4, 5, 6]
    for each in pushed:
        assert read_published(folder, each.published.number) == each.published


def test_who_is_always_late_says_so(
    demo: Collection, folder: FolderStore, stages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    published = push(demo, folder, stages).published
    monkeypatch.setattr(pushing, "newest_published", lambda _store: None)
    with pytest.raises(PublishedMeanwhileError, match="nothing was published: try again"):
        push(demo, folder, stages)
    assert newest(folder) == published


def test_a_store_that_overwrites_is_refused(demo: Collection, tmp_path: Path, stages: Path) -> None:
    class Overwriting(FolderStore):
        def create(self, path: str, content: bytes) -> None:
            (tmp_path / "store" / path).parent.mkdir(parents=True, exist_ok=True)
            write_atomically(tmp_path / "store" / path, [content])

    store = Overwriting(tmp_path / "store")
    with pytest.raises(OverwritingStoreError, match="lets a second create overwrite"):
        push(demo, store, stages)
    assert contents(store) == {}


def test_a_url_belongs_to_one_collection(
    root: Path, demo: Collection, folder: ObjectStore, stages: Path, tiny: Any, build: Any
) -> None:
    push(demo, folder, stages)
    build(root.parent, tiny, "tales")
    with pytest.raises(OtherCollectionError, match="collection 'demo', not 'tales'"):
        push(Collection.open(root, "tales"), folder, stages)
    assert newest_number(folder) == 1


def test_a_damaged_file_is_not_published(demo: Collection, folder: ObjectStore, stages: Path) -> None:
    path = next(demo.layout.segments.glob("*/*"))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(DamagedObjectError, match="SHA-256"):
        push(demo, folder, stages)
    assert newest_published(folder) is None
    demo.layout.settings.write_bytes(demo.layout.settings.read_bytes() + b" ")
    with pytest.raises(DamagedIndexError, match=r"collection.json was altered"):
        push(demo, folder, stages)


def test_one_push_of_a_collection_at_a_time(demo: Collection, folder: ObjectStore, stages: Path) -> None:
    def push_too(_done: int, _total: int) -> None:
        with pytest.raises(CollectionBusyError):
            push(demo, folder, stages)

    assert push(demo, folder, stages, push_too).new


def test_a_collection_is_pushed_while_it_is_written(
    demo: Collection, folder: ObjectStore, stages: Path, write: Any, root: Path
) -> None:
    with LiveCollection(demo) as live:

        def publish(_done: int, _total: int) -> None:
            live.delete(["rail"])
            live.flush()
            live.merge()

        assert push(demo, folder, stages, publish).published.manifest.documents == 5
    assert push(demo, folder, stages).published.manifest.documents == 4


def test_a_folder_that_cannot_be_written_is_told(demo: Collection, tmp_path: Path, stages: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(UnreachableStoreError, match="cannot be used"):
        push(demo, FolderStore(tmp_path / "file"), stages)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b'"format": 1', b'"format": 2'),
        (b'"segments/', b'"../segments/'),
        (b'"collection.json"', b'"collection.txt"'),
        (b'"ledger_position"', b'"position_of_it"'),
        (b'"collection": "demo"', b'"collection": "../demo"'),
        (b"{", b"["),
    ],
)
def test_what_is_no_manifest_is_told(
    demo: Collection, folder: FolderStore, stages: Path, before: bytes, after: bytes
) -> None:
    content = push(demo, folder, stages).published.content
    assert before in content
    folder.create(manifest_path(2), content.replace(before, after, 1))
    with pytest.raises(DamagedSnapshotError, match=r"manifests/000002\.json"):
        newest_published(folder)


def test_a_file_has_no_name_but_a_digest(demo: Collection, folder: FolderStore, stages: Path) -> None:
    """As one that leads out of the folder for files; those of segments are the index's own to check."""
    demo.store_defaults(DEFAULTS)
    published = push(demo, folder, stages).published
    sha256 = published.files[demo.layout.defaults.name].sha256
    elsewhere = published.content.replace(sha256.encode(), b"../" + sha256[3:].encode())
    folder.create(manifest_path(2), elsewhere)
    with pytest.raises(DamagedSnapshotError, match=r"is no SHA-256"):
        newest_published(folder)


def test_a_manifest_goes_with_the_settings_that_it_was_written_with(
    demo: Collection, folder: FolderStore, stages: Path
) -> None:
    record = json.loads(push(demo, folder, stages).published.content)
    record["files"]["collection.json"]["sha256"] = "0" * 64
    folder.create(manifest_path(2), json.dumps(record).encode())
    with pytest.raises(DamagedSnapshotError, match=r"collection.json is not the one"):
        newest_published(folder)
