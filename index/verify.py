"""Verifies a published collection completely: every checksum, count, offset, id and value."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from tercet.index.catalog.layout import FIRST_MANIFEST, CollectionLayout
from tercet.index.catalog.manifest import Manifest, SegmentEntry
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.collection import OPEN_ATTEMPTS, Collection
from tercet.index.errors import DamagedIndexError, SearchIndexError
from tercet.index.ledger.reader import LedgerReader
from tercet.index.segments.contents import kept_ids_in_order, segment_faults
from tercet.index.segments.deletes import read_deletes
from tercet.index.segments.segment import Segment
from tercet.index.segments.window_contents import window_faults
from tercet.index.verified import file_problem, note_verified, settings_problems


def verify(root: Path, name: str) -> list[str]:
    """The problems of a collection, each naming its file; none for a sound collection.

    Reads every byte of the current snapshot, and notes in the folder that it was sound. Raises
    InvalidNameError or CollectionNotFoundError.
    """
    try:
        collection = Collection.open(root, name)
        faults = _verify_defaults(collection)
        for _ in range(OPEN_ATTEMPTS):
            current = collection.current()
            if current is None:
                return _unpublished(collection) + _verify_ledger(collection, 0) + faults
            problems = _verify_snapshot(collection, current)
            if not problems:
                with suppress(OSError):  # a root that is only read
                    note_verified(collection.layout)
            # A publication meanwhile removes the files of the snapshot before.
            if not problems or collection.current() == current:
                return problems + faults
    except DamagedIndexError as error:
        return [str(error)]
    return [f"{collection.layout.current} changed {OPEN_ATTEMPTS} times while it was verified; try again"]


def _verify_defaults(collection: Collection) -> list[str]:
    """What is wrong with what is stored for searches that do not say: it has no checksum, since people may
    write it.
    """
    faults = []
    for read in (collection.defaults, collection.effort):
        try:
            read()
        except DamagedIndexError as error:
            faults.append(str(error))
    return faults


def _verify_ledger(collection: Collection, position: int) -> list[str]:
    """What is wrong with the ledger of a collection whose segments hold the operations up to `position`."""
    path = collection.layout.ledger
    if not path.exists():
        return [f"{path} is missing, but {position} operations were accepted; restore it"] if position else []
    try:
        with LedgerReader.open(path) as ledger:
            if ledger.trimmed_position > position:
                return [
                    f"{path} begins after position {ledger.trimmed_position}, but the segments end "
                    f"at {position}; restore both from one backup"
                ]
            ledger.check()
    except SearchIndexError as error:
        return [str(error)]
    return []


def _unpublished(collection: Collection) -> list[str]:
    """What is wrong where no snapshot is current."""
    if not any(collection.layout.manifests.glob("*.json")) or _ledger_has_all(collection):
        return []
    return [
        f"{collection.layout.current} is missing, but {collection.layout.manifest(FIRST_MANIFEST)} is there: "
        "a first build was interrupted, or the file was lost; restore it with the one line "
        f"{FIRST_MANIFEST}, or build the collection again"
    ]


def _ledger_has_all(collection: Collection) -> bool:
    """Whether a first manifest holds nothing that the ledger has not: it is trimmed once that is current."""
    try:
        first = Manifest.read(collection.layout.manifest(FIRST_MANIFEST))
        with LedgerReader.open(collection.layout.ledger) as ledger:
            return ledger.trimmed_position == 0 < first.ledger_position <= ledger.last_position
    except SearchIndexError:
        return False


def _verify_snapshot(collection: Collection, current: str) -> list[str]:
    layout, settings = collection.layout, collection.settings
    try:
        manifest = Manifest.read(layout.manifest(current))
        problems = settings_problems(layout, manifest)
        for entry in manifest.segments:
            problems += _verify_segment(layout, entry, settings)
        problems = problems or _repeated_ids(layout, settings, manifest)
        return problems + _verify_ledger(collection, manifest.ledger_position)
    except DamagedIndexError as error:
        return [str(error)]


def _verify_segment(layout: CollectionLayout, entry: SegmentEntry, settings: CollectionSettings) -> list[str]:
    folder = layout.segment(entry.id)
    problems = [problem for name in sorted(entry.files) if (problem := file_problem(folder, entry, name))]
    with suppress(FileNotFoundError, NotADirectoryError):  # a publication may remove it meanwhile
        unknown = {path.name for path in folder.iterdir()} - entry.files.keys()
        problems += [f"{folder / name} does not belong to the segment; remove it" for name in sorted(unknown)]
    if problems:  # contents of altered files would only repeat the same damage
        return problems
    try:
        read_deletes(layout, entry)
        segment = Segment.open(layout, replace(entry, deletes=None), settings)
        faults = [
            *segment_faults(segment, entry, settings),
            *window_faults(segment, settings.vocabulary_size),
        ]
        return [f"{segment.arrays.path(array)}: {fault}" for array, fault in faults]
    except DamagedIndexError as error:
        return [str(error)]


def _repeated_ids(layout: CollectionLayout, settings: CollectionSettings, manifest: Manifest) -> list[str]:
    streams: list[Iterator[bytes]] = [
        kept_ids_in_order(Segment.open(layout, entry, settings)) for entry in manifest.segments
    ]
    return [
        f"{layout.manifest(manifest.name)}: document id {left.decode()!r} is in two segments; rebuild"
        for left, right in pairwise(heapq.merge(*streams))
        if left == right
    ]
