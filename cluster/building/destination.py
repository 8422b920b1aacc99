"""A collection of this machine whose documents are built elsewhere: it gets what the one shard has."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tercet.cluster.objects.store import ObjectStore
from tercet.cluster.snapshots.fetching import fetch, remove_fetched
from tercet.cluster.snapshots.published import required_snapshot
from tercet.cluster.snapshots.stages import stage
from tercet.index.backups.restoring import copy_as
from tercet.index.catalog.layout import CollectionLayout
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.collection import Collection
from tercet.index.errors import CollectionNotFoundError
from tercet.index.files.directory import make_folder
from tercet.index.live.adoption import AdoptionMode
from tercet.index.live.collection import LiveCollection
from tercet.ingest.passages.former import former_passages

PURPOSE = "build"

Bring = Callable[[ObjectStore], str]
"""Fetches the newest snapshot of a shard, and publishes it here; returns the snapshot's name."""


@contextmanager
def destination(
    root: Path, name: str, mode: AdoptionMode, mark: str, *, staged: bool, cuts: bool
) -> Iterator[Bring]:
    """Begins a build of a collection here, and yields what brings it once it is built.

    root: of the collections; mode, mark, staged, cuts: as for `build_target`. Raises as `LiveCollection`, and
    yields what raises what a store and a publication do; then the collection is as before.
    """
    if staged:
        layout = Collection.open(root, name).layout
        yield lambda store: _staged(store, CollectionLayout(layout.builds / mark))
        return
    stages = root.parent / "snapshots"
    try:
        existing = Collection.open(root, name)
    except CollectionNotFoundError:
        with stage(stages, PURPOSE, name) as folder:
            yield lambda store: _created(root, name, store, folder)
        return
    with (
        LiveCollection(existing) as live,
        live.begin_build() as build,
        stage(stages, PURPOSE, existing.settings.name) as folder,
    ):

        def adopt(store: ObjectStore) -> str:
            _fetch(store, folder)
            former: list[str] = []
            if cuts and mode == "upsert":
                built = Collection(folder, CollectionSettings.read(folder.settings))
                former = former_passages(live.snapshot(), built)
            return live.adopt(build, folder, mode, mark, former)

        yield adopt


def _staged(store: ObjectStore, folder: CollectionLayout) -> str:
    make_folder(folder.folder)
    return _fetch(store, folder)


def _created(root: Path, name: str, store: ObjectStore, folder: CollectionLayout) -> str:
    _fetch(store, folder)
    made = copy_as(root, name, Collection(folder, CollectionSettings.read(folder.settings)))
    return made.current() or ""


def _fetch(store: ObjectStore, folder: CollectionLayout) -> str:
    published = required_snapshot(store)
    fetch(store, published, folder, {})
    remove_fetched(folder)
    return published.name
