"""Files as memory: without descriptors, for as long as they are referred to, and not longer."""

from __future__ import annotations

import errno
import gc
import os
import resource
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tercet.index.candidates import Document
from tercet.index.errors import DamagedIndexError
from tercet.index.files.mapping import map_file

FIELDS = ("keyword", "integer", "number", "boolean", "datetime")
VALUES = {"keyword": ["a", "b"], "integer": 3, "number": 1.5, "boolean": True, "datetime": "2026-01-01"}


def descriptors(path: Path) -> list[str]:
    """What this process has open of files whose path begins like this."""
    folder, found = Path("/proc/self/fd"), []
    for name in os.listdir(folder):  # noqa: PTH208 - names, of which one is that of the listing itself
        try:
            found.append(str((folder / name).readlink()))
        except FileNotFoundError:
            continue
    return [each for each in found if each.startswith(str(path))]


def mapped(path: Path) -> int:
    """How many maps of files whose path begins like this there are."""
    return sum(str(path) in line for line in Path("/proc/self/maps").read_text().splitlines())


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_bytes(b"content")
    return path


def test_a_file_is_mapped_without_a_descriptor_and_read_only(file: Path) -> None:
    content = map_file(file)
    assert descriptors(file) == []
    assert mapped(file) == 1
    assert (bytes(content), content.readonly, len(content), content.format) == (b"content", True, 7, "B")
    assert content[:3] == b"con"
    with pytest.raises(TypeError, match="read-only"):
        content[0] = 0


@pytest.mark.slow
def test_a_map_lasts_as_long_as_what_was_made_of_it(file: Path) -> None:
    part = np.frombuffer(map_file(file)[3:5], np.uint8)
    file.unlink()
    gc.collect()
    assert part.tobytes() == b"te"
    assert mapped(file) == 1
    del part
    gc.collect()
    assert mapped(file) == 0


def test_an_empty_file_is_nothing_and_a_missing_one_damage(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    assert bytes(map_file(tmp_path / "empty")) == b""
    with pytest.raises(DamagedIndexError, match="none is missing; restore it"):
        map_file(tmp_path / "none")


def test_a_file_that_the_process_may_not_map_is_told_by_name(file: Path) -> None:
    os.truncate(file, 2**40)  # with a hole
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (2**39, hard))
    try:
        with pytest.raises(OSError, match=r"allocate memory.*file") as told:
            map_file(file)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    assert told.value.errno == errno.ENOMEM


@pytest.mark.slow
@pytest.mark.parametrize("together", [True, False])
def test_a_segment_holds_no_descriptor_whatever_its_files(
    request: pytest.FixtureRequest, build: Any, random_texts: Any, together: bool
) -> None:
    if not together:
        request.getfixturevalue("segments_of_files")
    kinds = {f"f{number:02}": FIELDS[number % 5] for number in range(20)}
    metadata = {name: VALUES[kind] for name, kind in kinds.items()}
    documents = [Document(f"d{number}", "text", None, metadata) for number in range(20)]
    collection = build(
        (documents, random_texts(20, 1)), fields=kinds, lexical="idf", bm25=True, dense_kind="hnsw"
    )
    snapshot = collection.snapshot()
    assert snapshot.get("d3") == documents[3]
    assert descriptors(collection.layout.folder) == []
    files = [path for path in collection.layout.segments.rglob("*") if path.is_file()]
    assert len(files) == 1 if together else len(files) > 80
    assert 0 < mapped(collection.layout.segments) <= len(files)
    del snapshot
    gc.collect()
    assert mapped(collection.layout.segments) == 0
