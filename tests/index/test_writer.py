"""Writing: what is refused, how segments roll, and that no failure ever harms the current snapshot."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tercet.index.candidates import Document
from tercet.index.catalog.manifest import Manifest
from tercet.index.collection import Collection, delete_collection
from tercet.index.errors import (
    CollectionBusyError,
    CollectionNotFoundError,
    DuplicateDocumentError,
    InvalidDocumentError,
    SearchIndexError,
    StorageError,
    UnforcedPublicationError,
)
from tercet.index.verify import verify
from tercet.index.writer import SegmentLimits
from tests.full_disk import largest_file

SCRIPT = Path(__file__).with_name("other_process.py")


def start(repository: Path, *arguments: object) -> subprocess.Popen[str]:
    """Starts `other_process.py` with one thread in each library, so that it may fork."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    return subprocess.Popen(
        [sys.executable, str(SCRIPT), *map(str, arguments)],
        cwd=repository,
        env={**os.environ, **threads},
        stdout=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> str:
    output, _ = process.communicate(timeout=200)
    assert process.returncode == 0, output
    return output


def wait_until_ready(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"


def test_segments_roll_by_documents(build: Any, random_corpus: Any) -> None:
    collection = build(random_corpus(10, 1), segment=4)
    manifest = Manifest.read(collection.layout.manifest("000001"))
    assert [segment.documents for segment in manifest.segments] == [4, 4, 2]
    assert manifest.documents == collection.snapshot().documents == 10


def test_segments_roll_by_bytes(root: Path, random_corpus: Any, make_settings: Any) -> None:
    documents, encoded = random_corpus(30, 1)
    collection = Collection.create(root, "demo", make_settings(encoded, "demo"))
    with collection.writer(SegmentLimits(total_bytes=1000)) as writer:
        for row in range(30):
            writer.add(documents[row : row + 1], encoded.take(np.array([row])))
        assert writer.documents == 30
        writer.publish()
    manifest = Manifest.read(collection.layout.manifest("000001"))
    assert 3 < len(manifest.segments) < 30
    assert verify(root, "demo") == []


@pytest.mark.parametrize(("buffered_bytes", "segments"), [(300, 2), (10_000, 1)])
def test_segments_roll_by_memory(
    root: Path, three: Any, make_settings: Any, buffered_bytes: int, segments: int
) -> None:
    settings = make_settings(three[1], "demo", fields={"tags": "keyword"})
    collection = Collection.create(root, "demo", settings)
    with collection.writer(SegmentLimits(buffered_bytes=buffered_bytes)) as writer:
        for row in range(3):  # the first has two distinct tags, about 160 bytes each
            writer.add(three[0][row : row + 1], three[1].take(np.array([row])))
        writer.publish()
    assert len(list(collection.layout.segments.iterdir())) == segments
    assert verify(root, "demo") == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["hnsw", "ivfrabitq", "flat"])
def test_indexing_is_told_and_can_be_ended(
    build: Any, root: Path, random_corpus: Any, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tercet.index.dense.building.HNSW_ROWS", 500)
    documents, encoded = random_corpus(2_600, 1)
    encoded.dense[2_000:2_100] = encoded.dense[0]
    collection = build((documents[:9], encoded.take(np.arange(9))), dense_kind=kind)
    told: list[tuple[int, int]] = []

    def indexed(done: int, total: int) -> None:
        told.append((done, total))
        if stopping and done >= 1_300:
            raise KeyboardInterrupt

    for stopping in (True, False):
        told.clear()
        with collection.writer(SegmentLimits(documents=1_300)) as writer:
            writer.add(documents, encoded)
            if stopping:
                with pytest.raises(KeyboardInterrupt):
                    writer.publish(indexed)
            else:
                writer.publish(indexed)
        assert collection.snapshot().documents == (9 if stopping else 2_600)
        assert {path.suffix for path in collection.layout.segments.iterdir()} == {""}
    assert {total for _, total in told} == {2_600}
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert told[-1][0] == 2_600
    assert verify(root, "demo") == []


def test_batches_of_any_size_give_the_same_snapshot(
    build: Any, root: Path, random_corpus: Any, make_settings: Any
) -> None:
    documents, encoded = random_corpus(25, 4)
    whole = build((documents, encoded), name="whole", segment=10).snapshot()
    collection = Collection.create(root, "parts", make_settings(encoded, "parts"))
    with collection.writer(SegmentLimits(documents=10)) as writer:
        for first in range(0, 25, 3):
            rows = np.arange(first, min(first + 3, 25))
            writer.add([documents[row] for row in rows], encoded.take(rows))
        writer.add([], encoded.take(np.empty(0, np.int64)))
        writer.publish()
    query = encoded.take(np.array([7]))
    left, right = whole.search(query, top_k=25), collection.snapshot().search(query, top_k=25)
    assert left.hits == right.hits


def test_publishing_replaces_and_removes_the_former_snapshot(
    build: Any, three: Any, random_corpus: Any
) -> None:
    collection = build(three)
    former = collection.snapshot()
    build((three[0][:2], three[1].take(np.array([0, 1]))))
    assert collection.current() == "000002"
    assert [path.name for path in collection.layout.manifests.iterdir()] == ["000002.json"]
    assert len(list(collection.layout.segments.iterdir())) == 1
    assert collection.snapshot().documents == 2
    assert former.get("c") == three[0][2]  # an open snapshot goes on answering
    assert len(former.search(three[1].take(np.array([0]))).hits) == 2  # "b" has scores of 0 alone


def test_what_was_published_stays_so_when_interrupted_afterwards(
    build: Any, three: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    collection = build(three)
    with collection.writer() as writer:
        writer.add(*three)
        monkeypatch.setattr("tercet.index.publisher.remove_all_but", interrupted)
        assert writer.publish() == "000002"
    assert collection.current() == "000002"


def test_a_writer_needs_the_collection_it_was_opened_for(
    root: Path, build: Any, three: Any, make_settings: Any
) -> None:
    collection = build(three)
    delete_collection(root, "demo")
    Collection.create(root, "demo", make_settings(three[1], "demo", fingerprint="e" * 64))
    with pytest.raises(CollectionNotFoundError, match="created anew"), collection.writer():
        pass


def test_leaving_without_publishing_changes_nothing(build: Any, three: Any, random_corpus: Any) -> None:
    collection = build(three)
    with collection.writer(SegmentLimits(documents=2)) as writer:
        writer.add([dataclasses.replace(d, text="new") for d in three[0]], three[1])
    assert collection.current() == "000001"
    assert collection.snapshot().get("a") == three[0][0]
    assert len(list(collection.layout.segments.iterdir())) == 1
    with pytest.raises(SearchIndexError, match="open another"):
        writer.publish()


def test_a_bad_document_is_refused_and_the_writer_goes_on(root: Path, three: Any, make_settings: Any) -> None:
    documents, encoded = three
    collection = Collection.create(root, "demo", make_settings(encoded, "demo"))
    with collection.writer() as writer:
        with pytest.raises(InvalidDocumentError, match="'b': a dense value is not finite"):
            writer.add(
                documents, dataclasses.replace(encoded, dense=np.add(encoded.dense, [[0], [np.inf], [0]]))
            )
        assert writer.documents == 0
        writer.add(documents, encoded)
        writer.publish()
    assert collection.snapshot().documents == 3


def test_duplicate_ids_are_named_and_the_writer_goes_on(root: Path, three: Any, make_settings: Any) -> None:
    documents, encoded = three
    collection = Collection.create(root, "demo", make_settings(encoded, "demo"))
    with collection.writer() as writer:
        writer.add(documents[:2], encoded.take(np.array([0, 1])))
        with pytest.raises(DuplicateDocumentError, match="'b'"):
            writer.add([documents[2], Document("b", "again")], encoded.take(np.array([2, 0])))
        writer.add(documents[2:], encoded.take(np.array([2])))
        writer.publish()
    assert collection.snapshot().documents == 3


def test_only_one_writer_at_a_time(build: Any, three: Any) -> None:
    collection = build(three)
    with (
        collection.writer(),
        pytest.raises(CollectionBusyError, match="'demo' is being written"),
        collection.writer(),
    ):
        pass
    with collection.writer():
        pass


@pytest.mark.slow
def test_the_lock_dies_with_its_process(build: Any, three: Any, root: Path, repository: Path) -> None:
    collection = build(three)
    holder = start(repository, "hold", root)
    try:
        wait_until_ready(holder)
        with pytest.raises(CollectionBusyError), collection.writer():
            pass
    finally:
        holder.kill()
        holder.communicate()
    build(three)
    assert collection.current() == "000002"


@pytest.mark.parametrize("size", [0, 100, 130, 200, 300, 500, 1000, 3000, 6000])
def test_a_full_disk_leaves_the_former_snapshot(
    build: Any, three: Any, root: Path, random_corpus: Any, size: int
) -> None:
    documents, encoded = random_corpus(60, 2)
    collection = build((documents[:9], encoded.take(np.arange(9))))
    with pytest.raises(OSError, match="File too large"), largest_file(size):
        build((documents, encoded), segment=25)
    require_former(collection, root, 9)
    build((documents, encoded), segment=25)
    assert collection.snapshot().documents == 60


@pytest.mark.slow
@pytest.mark.parametrize("missing", [1, 100, 5000])
def test_a_full_disk_cuts_no_graph_off(
    build: Any, segments_of_files: None, root: Path, random_corpus: Any, missing: int
) -> None:
    corpus = random_corpus(1200, 1)
    whole = build(corpus, name="whole", dense_kind="hnsw")
    size = next(whole.layout.segments.glob("*/dense.faiss")).stat().st_size
    assert size == max(path.stat().st_size for path in whole.layout.segments.glob("*/*"))
    documents, encoded = corpus
    collection = build((documents[:9], encoded.take(np.arange(9))), dense_kind="hnsw")
    with pytest.raises(OSError, match="File too large"), largest_file(size - missing):
        build(corpus)
    require_former(collection, root, 9)


def test_any_failing_sync_leaves_the_former_snapshot(
    build: Any, three: Any, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(three)
    collection = build(three)  # replacing others it has made the ledger, for its position
    real, left = os.fsync, 0

    def failing(descriptor: int) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            raise OSError(5, "Input/output error")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", failing)
    current = []
    for countdown in range(1, 200):
        left = countdown
        try:
            build(three)
        except (OSError, StorageError, UnforcedPublicationError):
            left = 0
            assert verify(root, "demo") == []
            current.append(collection.current())
            assert collection.snapshot().documents == 3
        else:
            break
    # The collection's folder; the packed file and its two folders; manifest and CURRENT with their folders.
    assert len(current) == 8
    # Only the last sync, of the folder, follows the rename that publishes.
    assert set(current[:-1]) == {"000002"}


def require_former(collection: Collection, root: Path, documents: int) -> None:
    """The first snapshot is current and sound, and nothing else is left."""
    assert collection.current() == "000001"
    assert collection.snapshot().documents == documents
    assert verify(root, "demo") == []
    assert len(list(collection.layout.segments.iterdir())) == 1
    assert [path.name for path in collection.layout.manifests.iterdir()] == ["000001.json"]


def test_a_failed_writer_cannot_publish(build: Any, three: Any, root: Path) -> None:
    collection = build(three)
    with collection.writer() as writer:
        writer.add(three[0], three[1])
        with pytest.raises(OSError, match="File too large"), largest_file(100):
            writer.publish()
        with pytest.raises(SearchIndexError, match="failed"):
            writer.publish()
    require_former(collection, root, 3)


@pytest.mark.slow
def test_death_at_an_operation_leaves_the_former_snapshot_or_the_new_one(
    root: Path, repository: Path
) -> None:
    root.mkdir()
    assert int(finish(start(repository, "crash", root, 1, 19))) > 10


@pytest.mark.slow
def test_sigkill_at_random_moments(root: Path, repository: Path) -> None:
    root.mkdir()
    for _ in range(2):
        writer = start(repository, "write", root)
        wait_until_ready(writer)
        time.sleep(float(np.random.default_rng().uniform(0, 0.7)))
        writer.send_signal(signal.SIGKILL)
        writer.communicate()
        assert verify(root, "demo") == []
        assert Collection.open(root, "demo").snapshot().documents in (5, 7, 9)


@pytest.mark.slow
def test_readers_see_one_whole_version_while_others_are_published(root: Path, repository: Path) -> None:
    root.mkdir()
    writer = start(repository, "write", root)
    try:
        wait_until_ready(writer)
        readers = [start(repository, "read", root, 4) for _ in range(2)]
        for reader in readers:  # each ends when it has seen four versions, and fails at a mixture
            finish(reader)
    finally:
        writer.kill()
        writer.communicate()
