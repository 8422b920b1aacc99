"""What publishing leaves when it fails: the former snapshot or the new one, and no doubt which."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tercet.index.candidates import Document
from tercet.index.catalog.layout import CollectionLayout
from tercet.index.catalog.manifest import Manifest, SegmentEntry
from tercet.index.catalog.publication import Publication
from tercet.index.collection import Collection
from tercet.index.errors import DamagedIndexError, UnforcedPublicationError
from tercet.index.live.collection import LiveCollection
from tercet.index.segments.writer import FilledSegment
from tercet.index.verify import verify

# A manifest, and then CURRENT, takes three steps: the file is forced to the disk, renamed, its folder forced.
STEPS, RENAMING, FORCING = 6, 4, 5


class FailingStep:
    """Lets one step fail that follows the beginning of the manifest: instead of being done, or afterwards."""

    def __init__(
        self, patch: pytest.MonkeyPatch, step: int, error: BaseException, *, done: bool = False
    ) -> None:
        self._left = step
        self._error = error
        self._done = done
        write = Manifest.write

        def begin(manifest: Manifest, path: Path) -> None:
            patch.setattr(os, "fsync", self._failing(os.fsync))
            patch.setattr(Path, "replace", self._failing(Path.replace))
            write(manifest, path)

        patch.setattr(Manifest, "write", begin)

    def _failing(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def step(*arguments: Any) -> Any:
            self._left -= 1
            if self._left != -1:
                return function(*arguments)
            if self._done:
                function(*arguments)
            raise self._error

        return step


def publish(collection: Collection, corpus: Any, text: str) -> str:
    """Publishes the documents of a corpus, all with this text."""
    documents, encoded = corpus
    with collection.writer() as writer:
        writer.add([Document(document.id, text) for document in documents], encoded)
        return writer.publish()


def text_of(collection: Collection) -> str:
    """The text that all documents of the current snapshot have, which is sound."""
    assert verify(collection.layout.folder.parent, "demo") == []
    document = collection.snapshot().get("a")
    assert document is not None
    return document.text


def files(collection: Collection) -> tuple[list[str], int]:
    """The manifests and the number of segments that are there."""
    layout = collection.layout
    assert not list(layout.folder.rglob("*.new"))
    return sorted(path.name for path in layout.manifests.iterdir()), len(list(layout.segments.iterdir()))


@pytest.fixture
def collection(build: Any, three: Any) -> Collection:
    """One whose first snapshot has the text "former"."""
    found: Collection = build(([Document(document.id, "former") for document in three[0]], three[1]))
    return found


@pytest.fixture
def published(disk: Any, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, list[Path]]]:
    """Of each publication that follows its manifest, and what that names without being on the disk."""
    found, publish_manifest = list[tuple[str, list[Path]]](), Publication.publish

    def follow(publication: Publication) -> None:
        layout, manifest = publication._layout, publication.manifest
        named = [layout.manifest(manifest.name)]
        for entry in manifest.segments:
            named += [layout.segment(entry.id) / name for name in entry.files]
            named += [] if entry.deletes is None else [layout.deletes / entry.deletes.file]
        root, real = layout.folder.parent, os.replace

        def replace(source: Path, target: Path) -> None:
            if Path(target) == layout.current:
                found.append((manifest.name, [path for path in named if not disk.keeps(path, root)]))
            real(source, target)

        with monkeypatch.context() as patch:
            patch.setattr(os, "replace", replace)
            publish_manifest(publication)
        found[-1][1].extend([layout.current] * (not disk.keeps(layout.current, root)))

    monkeypatch.setattr(Publication, "publish", follow)
    return found


@pytest.mark.usefixtures("segments_of_files")
def test_what_a_manifest_names_is_on_the_disk_before_it_is_current(
    published: list[tuple[str, list[Path]]], build: Any, random_corpus: Any
) -> None:
    documents, encoded = random_corpus(9, 1)
    collection = build((documents, encoded), segment=4)
    with LiveCollection(collection) as live:
        for first in (0, 2, 4):
            some = np.arange(first, first + 5)
            live.put([documents[place] for place in some], encoded.take(some))
            live.flush()  # which marks as deleted what was put again
        live.merge()
    assert published == [(f"{number:06}", []) for number in range(1, len(published) + 1)]
    assert len(published) >= 3


@pytest.mark.parametrize("done", [False, True])
@pytest.mark.parametrize("error", [OSError(5, "Input/output error"), KeyboardInterrupt()], ids=["io", "int"])
@pytest.mark.parametrize("step", range(STEPS))
def test_whichever_step_fails_it_is_told_what_is_current(
    collection: Collection, three: Any, step: int, error: BaseException, done: bool
) -> None:
    renamed = step > RENAMING or (step == RENAMING and done)
    interrupted = isinstance(error, KeyboardInterrupt)
    with pytest.MonkeyPatch.context() as patch:
        FailingStep(patch, step, error, done=done)
        if not renamed:
            with pytest.raises(type(error)):
                publish(collection, three, "new")
        elif interrupted:
            assert publish(collection, three, "new") == "000002"
        else:
            with pytest.raises(UnforcedPublicationError, match=r"000002 .*was published, .*Input/output"):
                publish(collection, three, "new")
    if not renamed:
        assert (text_of(collection), files(collection)) == ("former", (["000001.json"], 1))
    elif interrupted:
        assert (text_of(collection), files(collection)) == ("new", (["000002.json"], 1))
    else:  # a loss of power may bring the former one back
        assert (text_of(collection), files(collection)) == ("new", (["000001.json", "000002.json"], 2))
        collection.layout.current.write_text("000001\n")
        assert text_of(collection) == "former"
    name = publish(collection, three, "last")
    assert (text_of(collection), files(collection)) == ("last", ([f"{name}.json"], 1))


def test_an_interrupted_publication_that_cannot_be_forced_is_told(
    collection: Collection, three: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(path: Path) -> None:
        if path == collection.layout.folder:
            raise OSError(5, "Input/output error")

    FailingStep(monkeypatch, RENAMING, KeyboardInterrupt(), done=True)
    with collection.writer() as writer:
        writer.add(*three)
        monkeypatch.setattr("tercet.index.catalog.publication.force", failing)
        with pytest.raises(UnforcedPublicationError, match="was published"):
            writer.publish()
    assert files(collection) == (["000001.json", "000002.json"], 2)


def test_nothing_is_removed_while_it_is_unknown_what_is_current(
    collection: Collection, three: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreadable(layout: CollectionLayout) -> str:
        raise OSError(24, "Too many open files")

    with pytest.MonkeyPatch.context() as patch:
        FailingStep(patch, FORCING, OSError(24, "Too many open files"))
        with collection.writer() as writer:
            writer.add(*three)
            patch.setattr(CollectionLayout, "read_current", unreadable)
            with pytest.raises(UnforcedPublicationError, match="may be published"):
                writer.publish()
    assert files(collection) == (["000001.json", "000002.json"], 2)
    assert text_of(collection) == three[0][0].text


def test_a_segment_that_cannot_be_opened_is_not_published(
    collection: Collection, three: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    finish = FilledSegment.finish

    def cut_off(filled: FilledSegment, *options: Any) -> SegmentEntry:
        entry = finish(filled, *options)
        path = max((collection.layout.segments / entry.id).iterdir(), key=lambda path: path.stat().st_size)
        os.truncate(path, path.stat().st_size - 1)
        return entry

    monkeypatch.setattr(FilledSegment, "finish", cut_off)
    with pytest.raises(DamagedIndexError, match=r"just written, so nothing was published: .*bytes, but was"):
        publish(collection, three, "new")
    assert (text_of(collection), files(collection)) == ("former", (["000001.json"], 1))


def fail(collection: Collection, three: Any) -> None:
    """A build that fails after a segment is complete and its manifest written."""
    with pytest.MonkeyPatch.context() as patch:
        FailingStep(patch, RENAMING, OSError(28, "No space left on device"))
        with pytest.raises(OSError, match="No space"):
            publish(collection, three, "failed")


@pytest.mark.parametrize("versions", [1, 2])
@pytest.mark.parametrize("lost_first", [True, False])
def test_a_lost_current_file_can_be_restored_after_a_failed_build(
    collection: Collection, three: Any, versions: int, lost_first: bool
) -> None:
    if versions == 2:
        publish(collection, three, "second")
    if not lost_first:
        fail(collection, three)
    collection.layout.current.unlink()
    if lost_first:
        fail(collection, three)
        with pytest.raises(RuntimeError, match="stopped"), collection.writer():
            raise RuntimeError("stopped")
    (problem,) = verify(collection.layout.folder.parent, "demo")
    assert f"restore it with the one line 00000{versions}, or " in problem
    collection.layout.current.write_text(f"00000{versions}\n")
    assert text_of(collection) == ("former", "second")[versions - 1]


def test_a_build_after_a_lost_current_file_clears_once_it_is_published(
    collection: Collection, three: Any
) -> None:
    collection.layout.current.unlink()
    assert publish(collection, three, "new") == "000002"
    assert (text_of(collection), files(collection)) == ("new", (["000002.json"], 1))


def test_a_failed_build_leaves_the_segments_of_a_damaged_manifest(collection: Collection, three: Any) -> None:
    manifest = collection.layout.manifest("000001")
    content = manifest.read_bytes()
    manifest.write_bytes(content[:-9])
    fail(collection, three)
    manifest.write_bytes(content)
    assert (text_of(collection), files(collection)) == ("former", (["000001.json"], 1))


def test_numbers_grow_where_the_current_manifest_is_lost(collection: Collection, three: Any) -> None:
    collection.layout.manifest("000001").unlink()
    fail(collection, three)
    assert collection.current() == "000001"
    assert publish(collection, three, "new") == "000002"
    assert (text_of(collection), files(collection)) == ("new", (["000002.json"], 1))
