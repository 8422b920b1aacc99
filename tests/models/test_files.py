"""Files are the former or the new one, whatever stops their writing."""

from __future__ import annotations

import fcntl
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from tercet.models.files import alone, replace_file
from tercet.models.weights.head_weights import HeadWeights, LinearHead, read_heads, write_heads
from tests.full_disk import largest_file


def test_a_file_that_cannot_be_written_whole_leaves_the_former(tmp_path: Path) -> None:
    replace_file(tmp_path / "record.json", b"former")
    with largest_file(100), pytest.raises(OSError, match="File too large"):
        replace_file(tmp_path / "record.json", b"x" * 1000)
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("record.json", b"former")]
    replace_file(tmp_path / "record.json", b"new")
    assert (tmp_path / "record.json").read_bytes() == b"new"
    assert (tmp_path / "record.json").stat().st_mode & 0o777 == 0o644


def test_heads_that_cannot_be_written_are_an_error_of_the_disk(tmp_path: Path) -> None:
    """Which commands tell in one line, and a first start answers by running on torch."""
    former, other = (
        HeadWeights(LinearHead(np.full((1, 32), value, np.float32), np.zeros(1, np.float32)))
        for value in (1, 2)
    )
    write_heads(tmp_path, former)
    with largest_file(64), pytest.raises(OSError, match="File too large"):
        write_heads(tmp_path, other)
    found = read_heads(tmp_path, 32).sparse
    assert found is not None
    np.testing.assert_array_equal(found.weight, np.ones((1, 32), np.float32))


def test_one_at_a_time_has_a_lock_and_the_last_leaves_no_file(tmp_path: Path) -> None:
    """Though each removes the file that others wait for."""
    count = 0

    def take_turns() -> None:
        nonlocal count
        for _ in range(30):
            with alone(tmp_path / ".lock", "others write"):
                before = count
                time.sleep(0)  # another would read the same number now
                count = before + 1

    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(take_turns) for _ in range(8)]:
            done.result()
    assert count == 8 * 30
    assert list(tmp_path.iterdir()) == []


def test_macos_forces_to_the_disk_and_not_only_to_its_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forced: list[tuple[str, int]] = []

    def note(descriptor: int, command: int) -> None:
        forced.append((Path(f"/proc/self/fd/{descriptor}").readlink().name, command))

    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(fcntl, "F_FULLFSYNC", 51, raising=False)
    monkeypatch.setattr(fcntl, "fcntl", note)
    monkeypatch.delattr(os, "fsync")
    replace_file(tmp_path / "record.json", b"new")
    [(written, _), (folder, _)] = forced
    assert written.startswith(".record.json.")
    assert folder == tmp_path.name
    assert {command for _, command in forced} == {51}
