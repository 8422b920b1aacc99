"""The exclusive lock within one process; other processes are in test_writer.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from index.errors import CollectionBusyError, CollectionNotFoundError
from index.files.lock import ExclusiveLock


def test_one_holder_at_a_time(tmp_path: Path) -> None:
    first, second = (ExclusiveLock(tmp_path / "LOCK", "collection 'demo'") for _ in range(2))
    first.acquire()
    with pytest.raises(CollectionBusyError, match="collection 'demo' is being written"):
        second.acquire()
    first.release()
    first.release()
    second.acquire()
    second.release()


def test_a_lock_of_a_removed_folder_is_not_taken(tmp_path: Path) -> None:
    with pytest.raises(CollectionNotFoundError, match="collection 'demo' does not exist"):
        ExclusiveLock(tmp_path / "demo" / "LOCK", "collection 'demo'").acquire()
