"""A pulled snapshot answers to the last digit as where it was pushed, and is there whole or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tercet.cluster.objects.errors import DamagedObjectError, ObjectMissingError, UnreachableStoreError
from tercet.cluster.objects.folder import FolderStore
from tercet.cluster.objects.store import Moved, ObjectStore, nobody
from tercet.cluster.snapshots import fetching, transfers
from tercet.cluster.snapshots.errors import NotContinuedError, OtherCollectionError, SnapshotNotFoundError
from tercet.cluster.snapshots.published import file_path, manifest_path
from tercet.cluster.snapshots.pulling import Pulled, pull
from tercet.cluster.snapshots.pushing import push
from tercet.index.candidates import CandidateLimits, Weights
from tercet.index.catalog.defaults import SearchDefaults, Tuning
from tercet.index.collection import Collection, list_collections
from tercet.index.errors import CollectionBusyError, CollectionExistsError, FingerprintMismatchError
from tercet.index.files.directory import write_atomically
from tercet.index.live.collection import LiveCollection
from tercet.index.verify import verify

DEFAULTS = SearchDefaults(Weights(1, 0.5, 1), CandidateLimits(50, 60), Tuning("000001", 10, 5, 0, 0.4, 0.5))


def pulled(other: Path, store: ObjectStore, **options: Any) -> Pulled:
    return pull(other / "collections", "demo", store, other / "snapshots", **options)


@pytest.mark.slow
def test_it_answers_as_where_it_was_pushed(
    demo: Collection, store: ObjectStore, stages: Path, other: Path, write: Any, answers: Any
) -> None:
    write(demo, "new", without=("tea",))
    demo.store_defaults(DEFAULTS)
    push(demo, store, stages)
    progress: list[tuple[int, int]] = []
    done = pulled(other, store, progress=lambda *each: progress.append(each))
    assert done.fetched.bytes == done.published.size_bytes == progress[-1][0] == progress[-1][1]
    copy = Collection.open(other / "collections", "demo")
    assert answers(copy.snapshot()) == answers(demo.snapshot())
    assert copy.defaults() == DEFAULTS
    assert verify(other / "collections", "demo") == []
    write(copy, "after")  # it is a collection like any other
    assert copy.snapshot().documents == demo.snapshot().documents + 1
    assert verify(other / "collections", "demo") == []


def test_only_what_is_new_is_fetched(
    demo: Collection, folder: ObjectStore, stages: Path, other: Path, write: Any, answers: Any
) -> None:
    push(demo, folder, stages)
    pulled(other, folder)
    assert pulled(other, folder).fetched.files == 0
    write(demo, "new", without=("rail",))
    second = push(demo, folder, stages)
    again = pulled(other, folder)
    assert again.fetched.files == second.sent_files
    copy = Collection.open(other / "collections", "demo")
    assert answers(copy.snapshot()) == answers(demo.snapshot())
    assert verify(other / "collections", "demo") == []


def test_an_older_one_may_be_had_under_another_name(
    demo: Collection, folder: ObjectStore, stages: Path, root: Path, write: Any, answers: Any
) -> None:
    before = answers(demo.snapshot())
    push(demo, folder, stages)
    write(demo, "new")
    push(demo, folder, stages)
    done = pulled(root.parent, folder, new_name="before", number=1)
    assert (done.collection, done.published.number) == ("before", 1)
    assert answers(Collection.open(root, "before").snapshot()) == before
    with pytest.raises(SnapshotNotFoundError, match=r"000003.json is not there"):
        pulled(root.parent, folder, number=3)


def test_a_file_that_the_store_lost_is_told_with_its_remedy(
    demo: Collection, folder: ObjectStore, stages: Path, other: Path
) -> None:
    lost = push(demo, folder, stages).published.files["collection.json"].sha256
    folder.delete([file_path(lost)])
    with pytest.raises(ObjectMissingError, match=r"snapshot 000001 names it.*--repair"):
        pulled(other, folder)
    push(demo, folder, stages, repair=True)
    assert pulled(other, folder).published.number == 1


def test_a_manifest_that_was_collected_since_it_was_listed_is_not_the_newest(
    demo: Collection, folder: FolderStore, stages: Path, other: Path
) -> None:
    published = push(demo, folder, stages).published

    class Collecting(FolderStore):
        """Publishes a second snapshot and collects the first whenever that is to be read."""

        def get(self, path: str) -> bytes:
            if path == manifest_path(1):
                self.create(manifest_path(2), published.numbered(2).content)
                self.delete([path])
            return super().get(path)

    assert pulled(other, Collecting(Path(folder.url.removeprefix("file://")))).published.number == 2


@pytest.mark.parametrize("before", [False, True])
def test_declared_fields_come_along(
    demo: Collection,
    folder: ObjectStore,
    stages: Path,
    other: Path,
    root: Path,
    answers: Any,
    before: bool,
) -> None:
    if before:
        push(demo, folder, stages)
        pulled(other, folder)
    with LiveCollection(demo) as live:
        live.declare({"lang": "keyword"})
    push(Collection.open(root, "demo"), folder, stages)
    pulled(other, folder)
    copy = Collection.open(other / "collections", "demo")
    assert dict(copy.settings.fields) == {"year": "integer", "kind": "keyword", "lang": "keyword"}
    assert verify(other / "collections", "demo") == []


def test_a_flipped_byte_is_refused_and_changes_nothing(
    demo: Collection, folder: FolderStore, stages: Path, other: Path, write: Any, answers: Any
) -> None:
    push(demo, folder, stages)
    pulled(other, folder)
    before = answers(Collection.open(other / "collections", "demo").snapshot())
    write(demo, "new")
    sent = push(demo, folder, stages).published
    old = {entry.sha256 for entry in pulled(other, folder, number=1).published.files.values()}
    new = [entry for entry in sent.files.values() if entry.sha256 not in old]
    for entry in new:
        path = file_path(entry.sha256)
        content = folder.get(path)
        flipped = bytes([content[0] ^ 1, *content[1:]])
        folder.delete([path])
        folder.create(path, flipped)
        with pytest.raises(DamagedObjectError, match=f"{entry.sha256} is damaged"):
            pulled(other, folder)
        folder.delete([path])
        folder.create(path, content)
    assert answers(Collection.open(other / "collections", "demo").snapshot()) == before
    assert verify(other / "collections", "demo") == []
    assert pulled(other, folder).published.number == 2


@pytest.mark.parametrize("damaged", [False, True])
def test_what_an_interrupted_pull_fetched_is_not_fetched_again(
    demo: Collection,
    folder: FolderStore,
    stages: Path,
    other: Path,
    monkeypatch: pytest.MonkeyPatch,
    damaged: bool,
) -> None:
    monkeypatch.setattr(transfers, "THREADS", 1)  # of several, two may take the first file for theirs

    class Breaking(FolderStore):
        """Fails at the second file."""

        left = 1

        def get_file(self, path: str, target: Path, sha256: str, moved: Moved = nobody) -> None:
            if self.left == 0:
                raise UnreachableStoreError("no network")
            self.left -= 1
            super().get_file(path, target, sha256, moved)

    sent = push(demo, folder, stages)
    with pytest.raises(UnreachableStoreError, match="no network"):
        pulled(other, Breaking(Path(folder.url.removeprefix("file://"))))
    assert list_collections(other / "collections") == []
    (left,) = (other / "snapshots" / "pull-demo" / "files").iterdir()
    if damaged:
        left.write_bytes(bytes(left.stat().st_size))
    assert pulled(other, folder).fetched.files == sent.sent_files - (not damaged)
    assert not list((other / "snapshots").glob("*/files/*"))


def test_names_of_files_are_forced_before_a_snapshot_is_current(
    demo: Collection, folder: ObjectStore, stages: Path, other: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    push(demo, folder, stages)
    forced: list[str] = []
    before: list[list[str]] = []

    def switch(path: Path, pieces: list[bytes]) -> None:
        before.append(sorted(forced))
        write_atomically(path, pieces)

    monkeypatch.setattr(fetching, "force", lambda path: forced.append(path.name))
    monkeypatch.setattr(fetching, "write_atomically", switch)
    segments = [each.id for each in pulled(other, folder).published.manifest.segments]
    assert before == [sorted([*segments, "deletes", "segments"])]


def test_a_damaged_file_of_ours_is_fetched_again(
    demo: Collection, folder: ObjectStore, stages: Path, other: Path
) -> None:
    push(demo, folder, stages)
    pulled(other, folder)
    copy = Collection.open(other / "collections", "demo")
    path = next(copy.layout.segments.glob("*/*"))
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    assert pulled(other, folder, new_name="again").fetched.files > 0
    assert pulled(other, folder).fetched.files == 1
    assert verify(other / "collections", "demo") == []


def test_what_cannot_be_pulled_is_told(
    demo: Collection, folder: ObjectStore, stages: Path, other: Path, tiny: Any, build: Any, adapter: Any
) -> None:
    with pytest.raises(SnapshotNotFoundError, match="nothing is published"):
        pulled(other, folder)
    push(demo, folder, stages)
    with pytest.raises(OtherCollectionError, match="give --as tales"):
        pull(other / "collections", "tales", folder, other / "snapshots")
    build(other, adapter)
    with pytest.raises(NotContinuedError, match="is another one than snapshot 000001"):
        pulled(other, folder)
    with pytest.raises(FingerprintMismatchError):
        pulled(other, folder, force=True)
    pulled(other, folder, new_name="mine")
    with (
        LiveCollection(Collection.open(other / "collections", "mine")),
        pytest.raises(CollectionBusyError),
    ):
        pulled(other, folder, new_name="mine")


@pytest.fixture
def adapter(tiny: Any) -> Any:
    """Another encoder."""
    return type(tiny)(seed=1)


def test_a_name_of_an_alias_is_taken(demo: Collection, folder: ObjectStore, stages: Path, root: Path) -> None:
    from tercet.index.catalog.aliases import Aliases

    push(demo, folder, stages)
    Aliases(root).put("latest", "demo")
    with pytest.raises(CollectionExistsError):
        pulled(root.parent, folder, new_name="latest")
