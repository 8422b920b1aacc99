"""What was pushed, pulled or followed outlives a loss of power, at whichever moment it comes."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tercet.cluster.objects.digests import require_sha256
from tercet.cluster.objects.folder import FolderStore
from tercet.cluster.snapshots import transfers
from tercet.cluster.snapshots.collecting import collect
from tercet.cluster.snapshots.followed import Followed, finish_interrupted
from tercet.cluster.snapshots.following import Follower
from tercet.cluster.snapshots.published import MANIFESTS, file_path, newest_number, number_of, read_published
from tercet.cluster.snapshots.pulling import pull
from tercet.cluster.snapshots.pushing import push
from tercet.index.collection import Collection, list_collections
from tercet.index.files.directory import make_folder
from tercet.index.verify import verify
from tercet.service.collections.registry import CollectionRegistry
from tests.cluster.snapshots.test_collecting import NONE
from tests.index.forced_disk import ForcedDisk

FIRST = ["black", "leaf", "rail", "steam/engine", "tea"]
SECOND = ["black", "leaf", "new", "rail", "steam/engine"]
KEPT: tuple[Callable[[Path], bool], ...] = (  # no name, every one, or those in the folders of stages
    lambda _: False,
    lambda _: True,
    lambda folder: "snapshots" in folder.parts,
)


class Machines:
    """One that writes and pushes, a store, one that pulls, and one that follows, below one folder."""

    def __init__(self, base: Path, demo: Collection, stages: Path, write: Any) -> None:
        self.store = FolderStore(base / "store")
        self.puller, self.follower = base / "puller", base / "follower"
        for data in (self.puller, self.follower):
            make_folder(data / "collections")
        self._demo, self._stages, self._write = demo, stages, write

    def story(self) -> Iterator[str]:
        """Each is acknowledged when it yields its name."""
        self._push()
        yield "pushed"
        self._pull()
        yield "pulled"
        registry = CollectionRegistry(self.follower / "collections")
        following = Follower(self.store.url, self.follower)
        following.look(registry)
        yield "followed"
        self._write(self._demo, "new", without=("tea",))
        self._push()
        yield "pushed again"
        self._pull()
        yield "pulled again"
        following.look(registry)
        yield "followed again"
        following.close()
        registry.close()
        collect(self.store, keep=1, grace=NONE)
        yield "collected"

    def _push(self) -> None:
        push(self._demo, self.store, self._stages)

    def _pull(self) -> None:
        pull(self.puller / "collections", "demo", self.store, self.puller / "snapshots")


def sound(base: Path) -> tuple[int, list[str] | None, int | None]:
    """The newest snapshot of the store, the documents that were pulled, and the snapshot that is followed,
    each None where it is not there. All is verified.
    """
    store = FolderStore(base / "store")
    for each in store.list(MANIFESTS):
        number = number_of(each.path)
        if number is not None:
            for entry in read_published(store, number).files.values():
                require_sha256(base / "store" / file_path(entry.sha256), entry.sha256, each.path)
    pulled, followed = base / "puller" / "collections", base / "follower" / "collections"
    finish_interrupted(followed, base / "follower" / "snapshots")
    documents, of_follower = None, None
    for root in (pulled, followed):
        for name in list_collections(root):
            assert verify(root, name) == []
    if "demo" in list_collections(pulled):
        documents = [each.id for each in Collection.open(pulled, "demo").snapshot().page(None, 100)]
    if "demo" in list_collections(followed):
        of_follower = Followed.of(followed / "demo")
    return newest_number(store), documents, None if of_follower is None else of_follower.number


@pytest.mark.slow
def test_what_is_acknowledged_outlives_a_loss_of_power(
    tmp_path: Path, demo: Collection, stages: Path, write: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfers, "THREADS", 1)
    base, left = tmp_path / "base", tmp_path / "left"
    base.mkdir()
    disk = ForcedDisk(base)
    checking = False

    def looked(kept: Callable[[Path], bool]) -> Any:
        nonlocal checking
        checking = True  # opening what is left renames, too
        try:
            return sound(disk.lay_out(left, kept))
        finally:
            checking = False
            shutil.rmtree(left)

    def renamed() -> None:
        if not checking:
            for kept in KEPT:
                looked(kept)

    with disk.followed(monkeypatch, renamed):
        acknowledged = {
            operation: [looked(kept) for kept in KEPT]
            for operation in Machines(base, demo, stages, write).story()
        }
    disk.close()
    expected = {
        "pushed": (1, None, None),
        "pulled": (1, FIRST, None),
        "followed": (1, FIRST, 1),
        "pushed again": (2, FIRST, 1),
        "pulled again": (2, SECOND, 1),
        "followed again": (2, SECOND, 2),
        "collected": (2, SECOND, 2),
    }
    assert acknowledged == {operation: [told] * len(KEPT) for operation, told in expected.items()}
