"""What is done to names on the disk: replacement, folders, and second names."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from tercet.index.errors import DamagedIndexError
from tercet.index.files import directory
from tercet.index.files.content import read_json_object
from tercet.index.files.directory import (
    link_folder,
    link_or_copy,
    make_folder,
    put_in_place,
    write_atomically,
    write_json_atomically,
)


def test_the_names_of_new_folders_are_forced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forced: list[Path] = []
    monkeypatch.setattr(directory, "force", forced.append)
    make_folder(tmp_path / "data" / "collections" / "demo")
    assert sorted(forced) == [tmp_path, tmp_path / "data", tmp_path / "data" / "collections"]
    make_folder(tmp_path / "data")
    assert len(forced) == 3


def test_a_name_is_forced_before_it_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forced: list[tuple[Path, list[str]]] = []
    monkeypatch.setattr(
        directory, "force", lambda path: forced.append((path, [each.name for each in path.iterdir()]))
    )
    write_atomically(tmp_path / "new", [b"one"])
    put_in_place(tmp_path / "new", tmp_path / "CURRENT")
    assert forced == [(tmp_path, ["new"]), (tmp_path, ["CURRENT"])]


def test_replacing_a_file_leaves_no_temporary_one(tmp_path: Path) -> None:
    path = tmp_path / "CURRENT"
    write_atomically(path, [b"one"])
    write_atomically(path, [b"two"])
    assert path.read_bytes() == b"two"
    assert list(tmp_path.iterdir()) == [path]


def test_a_failed_replacement_keeps_the_former_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "CURRENT"
    write_atomically(path, [b"one"])

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space") as raised:
        write_atomically(path, [b"two"])
    assert raised.value.filename == str(tmp_path)
    assert path.read_bytes() == b"one"
    assert list(tmp_path.iterdir()) == [path]


def test_json_objects_round_trip_and_others_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    write_json_atomically(path, {"name": "시", "count": 1})
    assert read_json_object(path) == {"name": "시", "count": 1}
    for content in (b"", b"{", b"[]", b"\xff", b"[" * 100_000):
        path.write_bytes(content)
        with pytest.raises(DamagedIndexError, match=r"record\.json"):
            read_json_object(path)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A folder of two files."""
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "a").write_bytes(b"one")
    (folder / "b").write_bytes(b"two")
    return folder


def fail(patch: pytest.MonkeyPatch, number: int) -> None:
    def link(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    patch.setattr(os, "link", link)


def test_links_share_the_file(source: Path, tmp_path: Path) -> None:
    link_folder(source, tmp_path / "target", ["a", "b"])
    assert sorted(path.name for path in (tmp_path / "target").iterdir()) == ["a", "b"]
    assert (tmp_path / "target" / "a").stat().st_ino == (source / "a").stat().st_ino


@pytest.mark.parametrize("number", [errno.EXDEV, errno.EPERM, errno.ENOTSUP, errno.EMLINK])
def test_where_there_are_no_links_files_are_copied_and_forced(
    source: Path, tmp_path: Path, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    forced: list[int] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        forced.append(os.fstat(descriptor).st_ino)
        real(descriptor)

    with monkeypatch.context() as patch:
        fail(patch, number)
        patch.setattr(os, "fsync", fsync)
        link_folder(source, tmp_path / "target", ["a", "b"])
    copies = [tmp_path / "target" / name for name in "ab"]
    assert [path.read_bytes() for path in copies] == [b"one", b"two"]
    assert copies[0].stat().st_ino != (source / "a").stat().st_ino
    assert {path.stat().st_ino for path in (*copies, copies[0].parent)} <= set(forced)


def test_other_failures_are_told(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fail(monkeypatch, errno.ENOSPC)
    with pytest.raises(OSError, match="No space"):
        link_or_copy(source / "a", tmp_path / "a")
    assert not (tmp_path / "a").exists()


def test_a_folder_appears_complete_or_not_at_all(source: Path, tmp_path: Path) -> None:
    with pytest.raises(DamagedIndexError, match="c is missing"):
        link_folder(source, tmp_path / "target", ["a", "c"])
    assert not (tmp_path / "target").exists()
    link_folder(source, tmp_path / "target", ["a"])  # over what the failure left
    assert [path.name for path in (tmp_path / "target").iterdir()] == ["a"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["source", "target"]
