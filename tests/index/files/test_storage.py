"""Atomic replacement, JSON objects and checksums."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from index.errors import DamagedIndexError
from index.files import storage
from index.files.storage import (
    make_folder,
    read_json_object,
    sha256_of,
    write_atomically,
    write_json_atomically,
)


def test_the_names_of_new_folders_are_forced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forced: list[Path] = []
    monkeypatch.setattr(storage, "sync_folder", forced.append)
    make_folder(tmp_path / "data" / "collections" / "demo")
    assert sorted(forced) == [tmp_path, tmp_path / "data", tmp_path / "data" / "collections"]
    make_folder(tmp_path / "data")
    assert len(forced) == 3


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
    with pytest.raises(OSError, match="No space"):
        write_atomically(path, [b"two"])
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


def test_checksum_is_sha256(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"tercet")
    assert sha256_of(path) == hashlib.sha256(b"tercet").hexdigest()
