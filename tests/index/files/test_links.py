"""Second names of files: links, or copies where there can be none."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from index.errors import DamagedIndexError
from index.files.links import link_folder, link_or_copy


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
