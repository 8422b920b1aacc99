"""Removes from an object store what nobody can need any more.

Kept are the newest snapshots, whatever is younger than a period of grace, so that uploads and downloads under
way live, and the files that kept manifests name. Manifests go before the files that they alone name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from tercet.cluster.objects.opening import PROBES, require_creation
from tercet.cluster.objects.store import ObjectStore, StoredObject
from tercet.cluster.snapshots.errors import DamagedSnapshotError, SnapshotNotFoundError
from tercet.cluster.snapshots.published import FILES, MANIFESTS, file_path, number_of, read_published

MAPS = "map"
SHARDS = "shards"
WORKS = "builds"
_PARTS = frozenset({MANIFESTS, FILES, MAPS, SHARDS, WORKS})
_MAP = re.compile(rf"{MAPS}/([0-9]{{6,12}})\.json")
# Beside manifests: contents, probes, and what a killed process was writing in a folder.
_OURS = re.compile(
    rf"{FILES}/[0-9a-f]{{64}}|{PROBES}/[0-9a-f]{{16}}"
    rf"|{FILES}/\.[0-9a-f]{{64}}\.[0-9a-f]{{8}}\.new|{MANIFESTS}/\.[0-9]{{6,12}}\.json\.[0-9a-f]{{8}}\.new"
)
_SHARD = re.compile(rf"{SHARDS}/[^/]+")


@dataclass(frozen=True, slots=True)
class Collected:
    """What was removed, or would be."""

    manifests: int
    files: int
    bytes: int


def collect(store: ObjectStore, *, keep: int, grace: timedelta, dry_run: bool = False) -> Collected:
    """Collects a collection's URL: a collection of its own, or one of shards with a map.

    keep: how many of the newest manifests stay, at least 1, and of the newest maps. dry_run: nothing is
    removed. Raises SnapshotNotFoundError where nothing of ours is, and DamagedSnapshotError where a kept
    manifest or map cannot be read, since what it names is unknown then; nothing is removed. Raises
    UnreachableStoreError.
    """
    if _PARTS.isdisjoint(store.folders()):
        raise SnapshotNotFoundError(
            f"nothing is published at {store.url}, nor left there by a push or build; give the URL of one"
        )
    since = require_creation(store) - grace
    shards, found = _of_maps(store, keep, since)
    for shard in shards:
        found += _of_collection(store.below(shard), shard, keep, since)
    found += _of_collection(store, "", keep, since)
    found += _of_works(store, since)
    manifests = [each for each in found if not _is_file(each)]
    files = [each for each in found if _is_file(each)]
    if not dry_run:
        store.delete(each.path for each in manifests)
        store.delete(each.path for each in files)
    return Collected(len(manifests), len(files), sum(each.size_bytes for each in found))


def _of_collection(store: ObjectStore, folder: str, keep: int, since: datetime) -> list[StoredObject]:
    """What may go of one collection's manifests and files; paths are of the store above its folder."""
    listed = list(store.list(FILES))  # before the manifests: what is published since then is younger
    manifests: list[StoredObject] = []
    left = list(store.list(PROBES))
    for each in store.list(MANIFESTS):
        (left if number_of(each.path) is None else manifests).append(each)
    kept, gone = _divided(manifests, keep, since)
    numbers = [number for number in map(number_of, (each.path for each in kept)) if number is not None]
    named = {
        file_path(entry.sha256)
        for number in numbers
        for entry in read_published(store, number).files.values()
    }
    gone += [
        each
        for each in (*listed, *left)
        if each.path not in named and each.modified <= since and _OURS.fullmatch(each.path)
    ]
    above = f"{folder}/" if folder else ""
    return [StoredObject(f"{above}{each.path}", each.size_bytes, each.modified) for each in gone]


def _of_maps(store: ObjectStore, keep: int, since: datetime) -> tuple[list[str], list[StoredObject]]:
    """The folders of shards that kept maps name, and what may go of maps and other shards."""
    listed = list(store.list(SHARDS))
    kept, gone = _divided([each for each in store.list(MAPS) if _MAP.fullmatch(each.path)], keep, since)
    named = {folder for each in kept for folder in _shards_of(store, each.path)}
    folders: dict[str, list[StoredObject]] = {}
    for each in listed:
        found = _SHARD.match(each.path)
        folders.setdefault(each.path if found is None else found[0], []).append(each)
    for folder, objects in folders.items():
        if folder not in named and all(each.modified <= since for each in objects):
            gone += objects
    return sorted(named), gone


def _of_works(store: ObjectStore, since: datetime) -> list[StoredObject]:
    """What builds and re-shardings left that nobody went on with; one that goes on has something younger."""
    works: dict[str, list[StoredObject]] = {}
    for each in store.list(WORKS):
        works.setdefault(each.path.split("/")[1], []).append(each)
    return [
        each
        for objects in works.values()
        if all(one.modified <= since for one in objects)
        for each in objects
    ]


def _shards_of(store: ObjectStore, path: str) -> list[str]:
    """The folders that a map names."""
    try:
        shards = json.loads(store.get(path))["shards"]
        received = [str(shard["received"]) for shard in shards if "received" in shard]
        return [*(str(shard["snapshots"]) for shard in shards), *received]
    except (ValueError, TypeError, KeyError) as error:
        raise DamagedSnapshotError(
            f"{store.url}/{path} is no map of shards ({error}), so it is not known what is needed: nothing "
            "was removed; remove it by hand where it is of no use"
        ) from error


def _divided(
    manifests: Iterable[StoredObject], keep: int, since: datetime
) -> tuple[list[StoredObject], list[StoredObject]]:
    """The newest, and those that are younger than the grace; and all others."""
    ordered = sorted(manifests, key=lambda each: each.path, reverse=True)
    ordered.sort(key=lambda each: len(each.path), reverse=True)  # more digits are a larger number
    kept = [each for place, each in enumerate(ordered) if place < keep or each.modified > since]
    return kept, [each for each in ordered if each not in kept]


def _is_file(each: StoredObject) -> bool:
    """Whether this is content, and no manifest or map, which name it and go first."""
    folder = each.path.rpartition("/")[0].rpartition("/")[2]
    return folder not in (MANIFESTS, MAPS)
