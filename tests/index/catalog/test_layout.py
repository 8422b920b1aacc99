"""Where a collection's files lie, and what its CURRENT file may say."""

from pathlib import Path

import pytest

from tercet.index.catalog.layout import CollectionLayout
from tercet.index.errors import DamagedIndexError


def test_paths_are_those_of_the_format(tmp_path: Path) -> None:
    layout = CollectionLayout(tmp_path / "articles")
    places = [layout.settings, layout.current, layout.manifest("000012"), layout.segments / "s1"]
    assert [place.relative_to(layout.folder).as_posix() for place in places] == [
        "collection.json",
        "CURRENT",
        "manifests/000012.json",
        "segments/s1",
    ]


def test_the_current_manifest(tmp_path: Path) -> None:
    layout = CollectionLayout(tmp_path)
    assert layout.read_current() is None
    layout.current.write_text("000012\n")
    assert layout.read_current() == "000012"


def test_a_lost_current_file_is_named(tmp_path: Path) -> None:
    layout = CollectionLayout(tmp_path)
    layout.manifests.mkdir()
    layout.manifest("000001").write_text("{}")  # as a first publication that was killed leaves it
    assert layout.read_current() is None
    layout.manifest("000002").write_text("{}")
    with pytest.raises(DamagedIndexError, match=r"CURRENT is missing; restore it with the one line 000002"):
        layout.read_current()


@pytest.mark.parametrize("content", [b"", b"../../000001", b"000001 000002", b"\xff\xfe"])
def test_a_damaged_current_file_is_named(tmp_path: Path, content: bytes) -> None:
    layout = CollectionLayout(tmp_path)
    layout.current.write_bytes(content)
    with pytest.raises(DamagedIndexError, match=r"CURRENT holds .* no manifest's name"):
        layout.read_current()
