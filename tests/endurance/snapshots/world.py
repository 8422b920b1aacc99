"""A collection that gets another state with each step, and what tells its states apart.

All of it runs in forked processes: the library of object stores has threads, which do not outlive a fork.
"""

from __future__ import annotations

import hashlib
import os
import time
from dataclasses import replace
from pathlib import Path

from tercet.cluster.objects.opening import open_store
from tercet.cluster.objects.store import ObjectStore
from tercet.cluster.snapshots.following import Follower
from tercet.cluster.snapshots.published import FILES, file_path, newest_published
from tercet.cluster.snapshots.pulling import Pulled, pull
from tercet.cluster.snapshots.pushing import push
from tercet.index.candidates import Document
from tercet.index.collection import Collection
from tercet.index.live.collection import LiveCollection
from tercet.index.snapshot import Snapshot
from tercet.index.verify import verify
from tercet.service.collections.registry import CollectionRegistry
from tests.endurance.crashes.workload import NAME, SETTINGS, representations

STEP_DOCUMENTS = 150
STEPS_KEPT = 4  # ids come again after as many steps, so that some documents are replaced
TEXT_BYTES = 20_000


def write_step(root: Path, step: int, kept: int | None = None) -> str:
    """Writes the documents of a step, flushes, and gives the digest of all that the collection holds.

    kept: which ids they have, by default those of the step.
    """
    if not (root / NAME).exists():
        root.mkdir(parents=True, exist_ok=True)
        Collection.create(root, NAME, replace(SETTINGS, bm25=False))
    first = (step % STEPS_KEPT if kept is None else kept) * STEP_DOCUMENTS
    ids = [f"{number // 50}-{number}" for number in range(first, first + STEP_DOCUMENTS)]
    documents = [Document(id, f"step {step} {os.urandom(TEXT_BYTES // 2).hex()}") for id in ids]
    collection = Collection.open(root, NAME)
    with LiveCollection(collection) as live:
        live.put(documents, representations(ids, [step] * len(ids)))
        live.flush()
        return digest_of(live.snapshot())


def digest_of(snapshot: Snapshot) -> str:
    """Of every id and text."""
    digest = hashlib.sha256()
    for document in sorted(snapshot.page(None, 10_000), key=lambda each: each.id):
        digest.update(f"{document.id} {document.text}\n".encode())
    return digest.hexdigest()


def push_all(root: Path, url: str) -> dict[str, object]:
    """Pushes; tells also how many files were missing on the store before."""
    store = open_store(url)
    there = {each.path for each in store.list(FILES)}
    started = time.perf_counter()
    done = push(Collection.open(root, NAME), store, root.parent / "snapshots")
    seconds = time.perf_counter() - started
    missing = {
        entry.sha256 for entry in done.published.files.values() if file_path(entry.sha256) not in there
    }
    return {
        "seconds": seconds,
        "number": done.published.number,
        "new": done.new,
        "sent_files": done.sent_files,
        "sent_bytes": done.sent_bytes,
        "missing_files": len(missing),
        "total_bytes": done.published.size_bytes,
    }


def pull_all(data: Path, url: str) -> dict[str, object]:
    """Pulls; tells what the collection is then."""
    started = time.perf_counter()
    done = pull_only(data, url)
    seconds = time.perf_counter() - started
    found = {"seconds": seconds, "number": done.published.number, "fetched_files": done.fetched.files}
    return {**state_of(data), **found}


def pull_only(data: Path, url: str) -> Pulled:
    """Pulls."""
    return pull(data / "collections", NAME, open_store(url), data / "snapshots")


def follow_all(data: Path, url: str) -> dict[str, object]:
    """Has a server's follower look once; tells what searches see then."""
    registry, follower = CollectionRegistry(data / "collections"), Follower(url, data)
    started = time.perf_counter()
    try:
        follower.look(registry)
        seconds = time.perf_counter() - started
        digest = digest_of(registry.snapshot(NAME)) if registry.names() else None
    finally:
        follower.close()
        registry.close()
    return {**state_of(data), "served": digest, "seconds": seconds}


def state_of(data: Path) -> dict[str, object]:
    """What the collection of a data root holds, and what is wrong with it."""
    root = data / "collections"
    if not (root / NAME / "collection.json").exists():
        return {"digest": None, "problems": []}
    snapshot = Collection.open(root, NAME).snapshot()
    return {"digest": digest_of(snapshot), "problems": verify(root, NAME)}


def published(url: str, scratch: Path) -> dict[str, object]:
    """The number of the newest snapshot, and what a data root has that pulls it for the first time."""
    store: ObjectStore = open_store(url)
    newest = newest_published(store)
    if newest is None:
        return {"number": 0, "digest": None, "problems": []}
    return pull_all(scratch, url)
