"""One contract for all stores: what is there is whole, verified, and created once."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import ClassVar

import pytest

from tercet.cluster.objects.digests import SMALLEST_PART_BYTES
from tercet.cluster.objects.errors import (
    AlreadyThereError,
    DamagedObjectError,
    ObjectMissingError,
    OverwritingStoreError,
    StoreAddressError,
    UnreachableStoreError,
)
from tercet.cluster.objects.folder import FolderStore
from tercet.cluster.objects.opening import open_store, require_creation
from tercet.cluster.objects.store import ObjectStore
from tercet.index.files.directory import write_atomically
from tests.cluster.conftest import Overwriting

SIZES = [0, 1, 70_000, SMALLEST_PART_BYTES, 2 * SMALLEST_PART_BYTES + 5]


def written(path: Path, size: int) -> str:
    """A file of this size; its SHA-256."""
    content = bytes(number * 31 % 251 for number in range(1000)) * (size // 1000 + 1)
    path.write_bytes(content[:size])
    return hashlib.sha256(content[:size]).hexdigest()


def test_what_is_created_is_read_and_listed(store: ObjectStore) -> None:
    store.create("manifests/000001.json", b"one")
    store.create("manifests/000002.json", b"two")
    store.create("files/ab", b"")
    assert store.get("manifests/000002.json") == b"two"
    assert sorted((each.path, each.size_bytes) for each in store.list("manifests")) == [
        ("manifests/000001.json", 3),
        ("manifests/000002.json", 3),
    ]
    assert {each.path for each in store.list()} == {
        "manifests/000001.json",
        "manifests/000002.json",
        "files/ab",
    }
    found = store.find("files/ab")
    assert found is not None
    assert found.size_bytes == 0
    assert abs(found.modified - datetime.now(UTC)) < timedelta(minutes=5)
    assert store.folders() == ["files", "manifests"]


def test_what_is_not_there_is_missing(store: ObjectStore, tmp_path: Path) -> None:
    assert list(store.list("manifests")) == []
    assert store.folders() == []
    assert store.find("files/ab") is None
    with pytest.raises(ObjectMissingError, match="files/ab is not there"):
        store.get("files/ab")
    with pytest.raises(ObjectMissingError, match="files/ab"):
        store.get_file("files/ab", tmp_path / "file", "0" * 64)
    store.delete(["files/ab"])
    sha256 = written(tmp_path / "source", 10)
    assert not store.has_file("files/ab", tmp_path / "source", sha256)


def test_a_second_creation_fails_and_changes_nothing(store: ObjectStore) -> None:
    store.create("manifests/000001.json", b"one")
    with pytest.raises(AlreadyThereError, match="is there already"):
        store.create("manifests/000001.json", b"two")
    assert store.get("manifests/000001.json") == b"one"


def test_of_many_who_create_the_same_one_succeeds(store: ObjectStore) -> None:
    def create(number: int) -> bool:
        try:
            store.create("manifests/000001.json", f"of {number}".encode())
        except AlreadyThereError:
            return False
        return True

    with ThreadPoolExecutor(16) as threads:
        created = list(threads.map(create, range(16)))
    assert sum(created) == 1
    assert store.get("manifests/000001.json") == f"of {created.index(True)}".encode()


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_a_file_comes_back_as_it_was_sent(store: ObjectStore, tmp_path: Path, size: int) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    sha256 = written(source, size)
    moved: list[int] = []
    store.put_file(f"files/{sha256}", source, sha256, moved.append)
    assert store.has_file(f"files/{sha256}", source, sha256)
    store.get_file(f"files/{sha256}", target, sha256, moved.append)
    assert target.read_bytes() == source.read_bytes()
    assert sum(moved) == 2 * size


def test_a_file_that_is_not_as_it_should_be_is_not_stored(store: ObjectStore, tmp_path: Path) -> None:
    for size in (10, 2 * SMALLEST_PART_BYTES):
        written(tmp_path / "source", size)
        with pytest.raises(DamagedObjectError, match=r"source"):
            store.put_file("files/ab", tmp_path / "source", "0" * 64)
        assert store.find("files/ab") is None


def test_a_flipped_byte_is_no_file(store: ObjectStore, tmp_path: Path) -> None:
    sha256 = written(tmp_path / "source", 70_000)
    flipped = bytearray((tmp_path / "source").read_bytes())
    flipped[40_000] ^= 1
    store.create("files/ab", bytes(flipped))
    assert not store.has_file("files/ab", tmp_path / "source", sha256)
    with pytest.raises(DamagedObjectError, match="files/ab is damaged"):
        store.get_file("files/ab", tmp_path / "target", sha256)
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["source"]


def test_a_folder_is_a_store_of_its_own(store: ObjectStore) -> None:
    shard = store.below("shards/1-0")
    shard.create("manifests/000001.json", b"one")
    assert store.get("shards/1-0/manifests/000001.json") == b"one"
    assert [each.path for each in shard.list("manifests")] == ["manifests/000001.json"]
    assert open_store(shard.url).get("manifests/000001.json") == b"one"


def test_what_is_deleted_is_gone(store: ObjectStore) -> None:
    for number in range(3):
        store.create(f"files/{number}", b"x")
    store.delete(["files/0", "files/2", "files/7"])
    assert [each.path for each in store.list()] == ["files/1"]


def test_a_store_that_creates_once_can_be_published_on(store: ObjectStore) -> None:
    assert abs(require_creation(store) - datetime.now(UTC)) < timedelta(minutes=5)
    assert list(store.list()) == []


def test_a_store_that_overwrites_is_refused(overwriting_bucket: str) -> None:
    store = open_store(overwriting_bucket)
    store.create("files/ab", b"one")
    assert store.get("files/ab") == b"one"
    with pytest.raises(OverwritingStoreError, match="If-None-Match"):
        require_creation(store)


class Silent(FolderStore):
    """Says yes to who comes second, and keeps what the first one wrote."""

    def create(self, path: str, content: bytes) -> None:
        if self.find(path) is None:
            super().create(path, content)


class Lying(FolderStore):
    """Says no to who comes second, and has what that one wrote."""

    def create(self, path: str, content: bytes) -> None:
        there = self.find(path) is not None
        target = Path(self.url.removeprefix("file://"), path)
        target.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(target, [content])
        if there:
            raise AlreadyThereError(path)


@pytest.mark.parametrize("kind", [Silent, Lying])
def test_a_store_where_both_or_neither_would_have_written_is_refused(
    tmp_path: Path, kind: type[FolderStore]
) -> None:
    with pytest.raises(OverwritingStoreError):
        require_creation(kind(tmp_path))


class Refusing(Overwriting):
    """Creates once; the answer to the first request gets lost on the way, and is asked for again."""

    requests: ClassVar[int] = 0

    def put(self, content: bytes) -> None:
        there = self.objects.setdefault(self.path, content)
        type(self).requests += 1
        lost = self.requests == 1
        self.answer(500 if lost else 200 if there is content else 412, b"")


def test_who_created_it_without_hearing_so_is_no_second_one(
    bucket_of: Callable[[type[Overwriting]], str],
) -> None:
    store = open_store(bucket_of(Refusing))
    store.create("manifests/000001.json", b"one")
    assert Refusing.requests == 2
    with pytest.raises(AlreadyThereError):
        store.create("manifests/000001.json", b"two")
    assert store.get("manifests/000001.json") == b"one"


class Flipping(Overwriting):
    """Has one bit of another value than it was sent."""

    def put(self, content: bytes) -> None:
        super().put(bytes([content[0] ^ 1]) + content[1:])


class Shortening(Overwriting):
    """Has a byte less than it was sent."""

    def put(self, content: bytes) -> None:
        super().put(content[:-1])


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "said"), [(Flipping, "is damaged"), (Shortening, "has 9 bytes after 10")])
def test_what_arrived_as_something_else_is_no_upload(
    bucket_of: Callable[[type[Overwriting]], str], tmp_path: Path, kind: type[Overwriting], said: str
) -> None:
    store = open_store(bucket_of(kind))
    sha256 = written(tmp_path / "source", 10)
    with pytest.raises(DamagedObjectError, match=said):
        store.put_file("files/ab", tmp_path / "source", sha256)
    assert kind.objects == {}


class Reading(Overwriting):
    """Counts what is read back, and tells a checksum of the content, or something else."""

    tells: ClassVar[bool] = True
    read: ClassVar[int] = 0

    def answer(self, status: int, body: bytes, content_range: str | None = None) -> None:
        type(self).read += self.command == "GET"
        super().answer(status, body, content_range)

    def send_header(self, keyword: str, value: str) -> None:
        super().send_header(keyword, value if self.tells or keyword != "ETag" else '"something else"')


@pytest.mark.slow
@pytest.mark.parametrize("tells", [True, False])
def test_only_what_a_store_tells_no_checksum_of_is_read_back(
    bucket_of: Callable[[type[Overwriting]], str], tmp_path: Path, *, tells: bool
) -> None:
    Reading.tells, Reading.read = tells, 0
    store = open_store(bucket_of(Reading))
    store.put_file("files/ab", tmp_path / "source", written(tmp_path / "source", 10))
    assert Reading.read == (not tells)


def test_what_may_not_be_read_is_not_taken_for_empty(tmp_path: Path) -> None:
    store = open_store(tmp_path.as_uri())
    store.create("manifests/000001.json", b"one")
    user = os.geteuid()
    (tmp_path / "manifests").chmod(0)
    try:
        os.seteuid(user or 65534)  # root may read all, and nobody nothing of ours
        with pytest.raises(UnreachableStoreError, match="Permission denied"):
            list(store.list("manifests"))
    finally:
        os.seteuid(user)
        (tmp_path / "manifests").chmod(0o700)


@pytest.mark.parametrize(
    "url",
    [
        "articles",
        "/mnt/articles",
        "file://relative",
        "file:///a%00b",
        "file:///a/%2e%2e/b",
        "s3://[bucket/a",
        "http://host/bucket",
        "s3:///path",
        "file:///a/../b",
        "s3://key:secret@bucket/x",
        "s3://bucket?region=x",
    ],
)
def test_what_names_no_store_is_refused(url: str) -> None:
    with pytest.raises(StoreAddressError) as raised:
        open_store(url)
    assert "secret" not in str(raised.value)


def test_a_server_that_does_not_answer_is_told(
    dead_url: str, monkeypatch: pytest.MonkeyPatch, bucket: str
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", dead_url)
    monkeypatch.setattr("tercet.cluster.objects.cloud.RETRIES", 1)
    with pytest.raises(UnreachableStoreError, match=r"cannot be used"):
        open_store(bucket).find("files/ab")


def test_a_bucket_that_is_not_there_is_told(s3_environment: str) -> None:
    with pytest.raises(UnreachableStoreError, match="nosuch"):
        list(open_store("s3://nosuch/path").list())
    with pytest.raises(UnreachableStoreError, match="nosuch"):
        open_store("s3://nosuch/path").get("manifests/000001.json")
