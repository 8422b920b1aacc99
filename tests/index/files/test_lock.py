"""The exclusive lock within one process; other processes are in test_writer.py."""

from __future__ import annotations

import fcntl
import time
from pathlib import Path

import pytest

from tercet.index.errors import CollectionBusyError, CollectionNotFoundError
from tercet.index.files.lock import ExclusiveLock, is_locked


def test_one_holder_at_a_time(tmp_path: Path) -> None:
    first, second = (ExclusiveLock(tmp_path / "LOCK", "collection 'demo'") for _ in range(2))
    first.acquire()
    with pytest.raises(CollectionBusyError, match="collection 'demo' is being written"):
        second.acquire()
    first.release()
    first.release()
    second.acquire()
    second.release()


@pytest.mark.parametrize("created_again", [True, False])
def test_a_lock_that_was_removed_while_it_was_taken_is_not_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, created_again: bool
) -> None:
    """A folder may be deleted, and created again, between the opening of its lock and the taking of it."""
    path, real = tmp_path / "LOCK", fcntl.flock
    later = ExclusiveLock(path, "collection 'demo'")

    def flock(descriptor: int, operation: int) -> None:
        monkeypatch.undo()
        path.unlink()
        if created_again:
            later.acquire()
        real(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(CollectionBusyError, match="is being written or deleted"):
        ExclusiveLock(path, "collection 'demo'").acquire()
    later.release()


def test_a_lock_of_a_removed_folder_is_not_taken(tmp_path: Path) -> None:
    with pytest.raises(CollectionNotFoundError, match="collection 'demo' does not exist"):
        ExclusiveLock(tmp_path / "demo" / "LOCK", "collection 'demo'").acquire()


def test_whether_a_lock_is_held_can_be_told_without_taking_it(tmp_path: Path) -> None:
    path = tmp_path / "LOCK"
    assert not is_locked(path)
    lock = ExclusiveLock(path, "collection 'demo'")
    lock.acquire()
    assert is_locked(path)
    lock.release()
    assert not is_locked(path)
    assert is_locked(path / "below a file")  # which cannot be told


def test_who_only_looks_refuses_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A look holds the lock for a moment, together with other looks."""
    path = tmp_path / "LOCK"
    with path.open("w") as looking:
        fcntl.flock(looking, fcntl.LOCK_SH)
        monkeypatch.setattr(time, "sleep", lambda _: fcntl.flock(looking, fcntl.LOCK_UN))
        with ExclusiveLock(path, "collection 'demo'"):
            assert is_locked(path)
