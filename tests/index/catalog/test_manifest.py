"""Manifests: what is written comes back, and anything unexpected is damage."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tercet.index.catalog.manifest import DeletesEntry, FileEntry, Manifest, SegmentEntry, is_manifest_name
from tercet.index.errors import DamagedIndexError

DELETES = DeletesEntry("000007-0000-0a-000008.npy", 2, 144, "d" * 64)
Alter = Callable[[Path, Callable[[dict[str, Any]], Any]], None]

MANIFEST = Manifest(
    "000007",
    "c" * 64,
    (
        SegmentEntry("000007-0000-0a", 3, 9, "flat", {"dense.npy": FileEntry(152, "a" * 64)}),
        SegmentEntry("000007-0001-0b", 2, 0, "hnsw", {"dense.npy": FileEntry(144, "b" * 64)}),
    ),
)


def test_manifests_come_back(tmp_path: Path) -> None:
    path = tmp_path / "000007.json"
    MANIFEST.write(path)
    assert Manifest.read(path) == MANIFEST
    assert MANIFEST.documents == 5
    record = json.loads(path.read_text())
    assert (record["format_version"], record["ledger_position"]) == (1, 0)
    assert "deletes" not in record["segments"][0]


def test_deleted_documents_are_not_counted(tmp_path: Path) -> None:
    path = tmp_path / "000007.json"
    marked = dataclasses.replace(MANIFEST.segments[0], deletes=DELETES)
    manifest = dataclasses.replace(MANIFEST, segments=(marked, MANIFEST.segments[1]), ledger_position=17)
    manifest.write(path)
    assert Manifest.read(path) == manifest
    assert (marked.documents, marked.documents_kept, manifest.documents) == (3, 1, 3)


@pytest.mark.parametrize(
    "change",
    [
        {"documents": 0},
        {"documents": 4},
        {"documents": True},
        {"file": "../rows.npy"},
        {"file": None},
        {"sha256": "a"},
        {"size_bytes": -1},
        {"more": 1},
    ],
)
def test_altered_deletes_are_damage(tmp_path: Path, change: dict[str, Any], alter: Alter) -> None:
    path = tmp_path / "000007.json"
    marked = dataclasses.replace(MANIFEST.segments[0], deletes=DELETES)
    dataclasses.replace(MANIFEST, segments=(marked,)).write(path)
    alter(path, lambda record: record["segments"][0]["deletes"].update(change))
    with pytest.raises(DamagedIndexError, match=r"000007\.json"):
        Manifest.read(path)


@pytest.mark.parametrize(
    "change",
    [
        lambda record: record.update(format_version=0),
        lambda record: record.update(format_version=2),
        lambda record: record.pop("ledger_position"),
        lambda record: record.update(deletes=None),
        lambda record: record.update(ledger_position=-4),
        lambda record: record["segments"][0].update(deletes=[]),
        lambda record: record.update(documents=6),
        lambda record: record.update(settings_sha256="c"),
        lambda record: record.update(segments={}),
        lambda record: record["segments"].append(None),
        lambda record: record["segments"].append(record["segments"][0]),
        lambda record: record["segments"][0].update(documents=-3),
        lambda record: record["segments"][0].update(tokens=1.5),
        lambda record: record["segments"][0].update(documents=True),
        lambda record: record["segments"][0].update(id="../../etc"),
        lambda record: record["segments"][0].update(dense_kind="auto"),
        lambda record: record["segments"][0].update(dense_kind=[]),
        lambda record: record["segments"][0].pop("files"),
        lambda record: record["segments"][0].update(files={}),
        lambda record: record["segments"][0].update(
            files={"../passwd": {"size_bytes": 1, "sha256": "a" * 64}}
        ),
        lambda record: record["segments"][0].update(files={"dense.npy": None}),
        lambda record: record["segments"][0]["files"]["dense.npy"].update(sha256="A" * 64),
        lambda record: record["segments"][0]["files"]["dense.npy"].update(size_bytes=-1),
    ],
)
def test_altered_manifests_are_damage(
    tmp_path: Path, change: Callable[[dict[str, Any]], Any], alter: Alter
) -> None:
    path = tmp_path / "000007.json"
    MANIFEST.write(path)
    alter(path, change)
    with pytest.raises(DamagedIndexError, match=r"000007\.json"):
        Manifest.read(path)


def test_windows_are_counted_only_where_there_are_some(tmp_path: Path, alter: Alter) -> None:
    path = tmp_path / "000007.json"
    segment = dataclasses.replace(MANIFEST.segments[0], windows=5)
    manifest = Manifest("000007", "c" * 64, (segment,))
    manifest.write(path)
    assert Manifest.read(path) == manifest
    for wrong in (None, -1, 2.0):
        alter(path, lambda record, value=wrong: record["segments"][0].update(windows=value))
        with pytest.raises(DamagedIndexError, match=r"000007\.json"):
            Manifest.read(path)
    MANIFEST.write(path)
    assert '"windows"' not in path.read_text()


def test_a_missing_manifest_is_damage(tmp_path: Path) -> None:
    with pytest.raises(DamagedIndexError, match=r"000001\.json is missing"):
        Manifest.read(tmp_path / "000001.json")


def test_manifest_names() -> None:
    assert is_manifest_name("000007")
    assert not any(is_manifest_name(name) for name in ("7", "00000x", "000007\n", "../0000", "٠٠٠٠٠٧", ""))
