"""Which temporary files a writer may remove, and that it harms nobody who is writing one."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tercet.index.candidates import CandidateLimits, Weights
from tercet.index.catalog.defaults import SearchDefaults, Tuning
from tercet.index.catalog.layout import CollectionLayout
from tercet.index.catalog.manifest import Manifest
from tercet.index.catalog.remains import STALE_SECONDS, remove_all_but, remove_unfinished

DEFAULTS = SearchDefaults(
    Weights(1, 0.3, 1), CandidateLimits(200, 200), Tuning("000001", 10, 5, 0, plain=0.4, tuned=0.5)
)


@pytest.fixture
def layout(tmp_path: Path) -> CollectionLayout:
    """A folder of a collection without anything in it."""
    found = CollectionLayout(tmp_path)
    found.segments.mkdir()
    found.manifests.mkdir()
    return found


@pytest.mark.parametrize(
    ("name", "age", "stays"),
    [
        (".CURRENT.0a.new", 0, False),
        (".collection.json.0a.new", 0, False),
        ("manifests/.000002.json.0a.new", 0, False),
        (".defaults.json.0a.new", 0, True),
        (".defaults.json.0a.new", STALE_SECONDS - 60, True),
        (".defaults.json.0a.new", STALE_SECONDS + 60, False),
        ("defaults.json", STALE_SECONDS + 60, True),
        ("manifests/000002.json", STALE_SECONDS + 60, True),
    ],
)
def test_temporary_files_of_others_are_removed_when_they_are_old(
    layout: CollectionLayout, name: str, age: float, stays: bool
) -> None:
    path = layout.folder / name
    path.touch()
    os.utime(path, times=(time.time() - age,) * 2)
    remove_unfinished(layout)
    assert path.exists() == stays


def test_unfinished_segments_are_removed_and_complete_ones_stay(layout: CollectionLayout) -> None:
    for name in ("000002-0000-0a.partial", "000002-0000-0a"):
        (layout.segments / name).mkdir()
        (layout.segments / name / "file").touch()
    remove_unfinished(layout)
    assert [path.name for path in layout.segments.iterdir()] == ["000002-0000-0a"]


@pytest.mark.parametrize("read", ["before", "after"])
def test_a_segment_that_another_thread_begins_meanwhile_stays(layout: CollectionLayout, read: str) -> None:
    """It adds the id, then makes the folder; both may happen just before the ids are read, or just after."""

    class Growing(set[str]):
        def __iter__(self) -> Iterator[str]:
            if read == "before":
                self._begin()
            yield from set(self)
            if read == "after":
                self._begin()

        def _begin(self) -> None:
            self.add("000002-0000-0b")
            layout.segment("000002-0000-0b.partial").mkdir()

    layout.segment("000001-0000-0a").mkdir()
    remove_all_but(layout, Manifest("000002", "", ()), Growing())
    assert [path.name for path in layout.segments.iterdir()] == ["000002-0000-0b.partial"]


def test_a_manifest_that_is_there_has_its_segments_whenever_a_removal_is_interrupted(
    build: Any, three: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout = build(three).layout
    (former,) = layout.manifests.iterdir()
    named = {segment.id for segment in Manifest.read(former).segments}

    class Interrupt(BaseException):
        pass

    def interrupted(folder: Path, **_: Any) -> None:
        raise Interrupt

    monkeypatch.setattr(shutil, "rmtree", interrupted)
    with pytest.raises(Interrupt):
        remove_all_but(layout, Manifest("000002", "", ()))
    assert {path.name for path in layout.segments.iterdir()} == named
    assert not former.exists()


@pytest.mark.slow
def test_defaults_are_stored_beside_publications(
    build: Any, three: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    collection = build(three)
    # As long as a fast disk takes, whatever disk the tests run on.
    monkeypatch.setattr(os, "fsync", lambda _: time.sleep(0.001))
    stored, ended = 0, threading.Event()

    def store() -> None:
        nonlocal stored
        while not ended.is_set():
            collection.store_defaults(DEFAULTS)
            stored += 1

    with ThreadPoolExecutor(1) as thread:
        storing = thread.submit(store)
        while stored < 300 and not storing.done():
            with collection.writer():  # cleans when it begins and when it ends
                pass
        ended.set()
        storing.result()
    assert collection.defaults() == DEFAULTS
