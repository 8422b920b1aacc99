"""What a killed or powerless process left: on the disk, and once the collection is opened again."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from tercet.index.backups.store import BackupStore
from tercet.index.backups.verifying import nobody, require_sound
from tercet.index.candidates import Weights
from tercet.index.catalog.layout import CollectionLayout
from tercet.index.catalog.manifest import Manifest
from tercet.index.collection import Collection, list_collections
from tercet.index.errors import SearchIndexError
from tercet.index.ledger.reader import LedgerReader
from tercet.index.live.collection import LiveCollection
from tercet.index.snapshot import Snapshot
from tercet.index.verify import verify
from tests.endurance.crashes.workload import (
    NAME,
    Contents,
    Write,
    backup_contents,
    backups_of,
    representations,
    versions_of,
)

DENSE = Weights(1, 0, 0)  # the side on which a document is the best hit for itself
COMPARED = 20  # documents whose stored representations are compared with what was written


@dataclass(frozen=True, slots=True)
class Found:
    """An opened collection, and its backups.

    documents: their versions, by id; keys: of the writes asked after, those that have an answer; remains:
    what was under way, by the files left; backups: those that are sound; problems: all that is wrong.
    """

    documents: Contents
    keys: list[str]
    remains: list[str]
    backups: list[str]
    problems: list[str]

    @property
    def record(self) -> dict[str, object]:
        """As JSON has it."""
        return asdict(self)


def inspect(root: Path, writes: Sequence[Write], seed: int) -> Found:
    """Verifies a collection, opens it, reads all of it, verifies it again. writes: those to ask after."""
    left = remains(CollectionLayout(root / NAME))
    problems = [f"before opening: {problem}" for problem in verify(root, NAME)]
    with LiveCollection(Collection.open(root, NAME)) as live:
        snapshot = live.snapshot()
        found = snapshot.page(None, snapshot.documents + 1)
        documents: Contents = {}
        for each in found:
            versions = versions_of(each)
            if versions is None:
                problems.append(f"a document that nobody wrote: {each}")
            else:
                documents[each.id] = versions
        if len(found) != snapshot.documents:
            problems.append(f"{snapshot.documents} documents are counted, and {len(found)} found")
        problems += _wrong_representations(snapshot, documents, seed)
        keys = [write.key.key for write in writes if live.written_under(write.key) is not None]
    for name in list_collections(root):
        problems += [f"after opening: {problem}" for problem in verify(root, name)]
    store, backups = BackupStore(backups_of(root)), list[str]()
    for backup in store.list(NAME):
        layout = store.layout(backup)
        try:
            current = str(layout.read_current())
            require_sound(layout, Manifest.read(layout.manifest(current)), nobody)
            backup_contents(layout)
            backups.append(backup.id)
        except SearchIndexError as error:
            problems.append(f"a backup: {error}")
    return Found(documents, keys, left, backups, problems)


def remains(layout: CollectionLayout) -> list[str]:
    """What a process was in the middle of, as its files say; nothing is opened to write."""
    name = layout.read_current() or "000000"
    position, named = 0, set[str]()
    if name != "000000":
        manifest = Manifest.read(layout.manifest(name))
        position, named = manifest.ledger_position, {segment.id for segment in manifest.segments}
    segments = {path.name for path in layout.segments.glob("*")}
    manifests = {path.stem for path in layout.manifests.glob("[0-9]*.json")}
    unnamed = {segment for segment in segments if not segment.endswith(".partial")} - named
    left = {
        "a segment is half written": any(segment.endswith(".partial") for segment in segments),
        "a segment is not published": any(segment.split("-")[0] > name for segment in unnamed),
        "a manifest is not current": any(manifest > name for manifest in manifests),
        "former files are not removed": any(manifest < name for manifest in manifests)
        or any(segment.split("-")[0] <= name for segment in unnamed),
        "a build is not removed": any(layout.builds.glob("*")),
    }
    if layout.ledger.exists():
        with LedgerReader.open(layout.ledger) as ledger:
            left["the ledger is not trimmed"] = ledger.trimmed_position < position
            left["writes are in the ledger alone"] = ledger.last_position > position
    return [what for what, there in left.items() if there]


def _wrong_representations(snapshot: Snapshot, documents: Contents, seed: int) -> list[str]:
    """Of some documents, those whose representations or best hit are not what their writes gave them."""
    problems = []
    chosen = random.Random(seed).sample(sorted(documents), min(COMPARED, len(documents)))
    for id in chosen:
        written, stored = representations([id], [documents[id][0]]), snapshot.stored(id)
        assert written.dense is not None
        if stored is None or not np.array_equal(stored[1].dense, written.dense.astype(np.float16)):
            problems.append(f"document {id} has other representations than were written")
    for id in chosen[:2]:
        hits = snapshot.search(representations([id], [documents[id][0]]), weights=DENSE).hits
        if not hits or hits[0].document.id != id:
            problems.append(f"document {id} is not the best hit for itself: {hits[:1]}")
    return problems
