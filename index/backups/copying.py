"""Copies a collection as it is published, without the bytes: its files never change, so they are linked."""

from __future__ import annotations

from dataclasses import replace

from tercet.index.catalog.layout import FIRST_MANIFEST, CollectionLayout
from tercet.index.catalog.manifest import Manifest
from tercet.index.catalog.remains import remove_all_but
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.collection import Collection
from tercet.index.errors import DamagedIndexError
from tercet.index.files.directory import link_folder, link_or_copy, write_atomically
from tercet.index.ledger.ledger import Ledger
from tercet.index.verified import settings_problems
from tercet.models.files import force


def copy_collection(source: Collection, target: CollectionLayout, settings: CollectionSettings) -> Manifest:
    """Makes `target` a collection of the current snapshot, defaults and effort of `source`.

    target: a folder that is there, with nothing but perhaps a lock; its name is still to be forced to the
    disk. settings: those of `source`, or what a new collection has of them. Without a snapshot it gets an
    empty one. Returns its manifest. Raises DamagedIndexError or OSError.
    """
    for folder in (target.segments, target.manifests, target.deletes):
        folder.mkdir()
    defaults, effort = source.defaults(), source.effort()
    manifest_linked = source.of_current(lambda current: _link_snapshot(source.layout, current, target))
    for folder in (target.segments, target.deletes):
        force(folder)
    manifest = replace(manifest_linked or Manifest(FIRST_MANIFEST, "", ()), settings_sha256=settings.sha256)
    settings.write(target.settings)
    if settings.later_fields:
        settings.write_later_fields(target.settings)
    if defaults is not None:
        defaults.write(target.defaults)
    if effort is not None:
        effort.write(target.effort)
    if manifest.ledger_position:
        begin_ledger(target, manifest.ledger_position)
    manifest.write(target.manifest(manifest.name))
    write_atomically(target.current, [f"{manifest.name}\n".encode()])
    return manifest


def _link_snapshot(source: CollectionLayout, current: str, target: CollectionLayout) -> Manifest:
    """Links what a manifest names; what it names no more is removed.

    Called again where a publication removes files meanwhile. Segments that are there already stay then, since
    they never change.
    """
    manifest = Manifest.read(source.manifest(current))
    for problem in settings_problems(source, manifest):
        raise DamagedIndexError(problem)
    for entry in manifest.segments:
        if not target.segment(entry.id).exists():
            link_folder(source.segment(entry.id), target.segment(entry.id), sorted(entry.files))
        if entry.deletes is not None and not (target.deletes / entry.deletes.file).exists():
            link_or_copy(source.deletes / entry.deletes.file, target.deletes / entry.deletes.file)
    remove_all_but(target, manifest)
    return manifest


def begin_ledger(target: CollectionLayout, position: int) -> None:
    """An empty ledger that goes on after a position, so that none is given twice."""
    with Ledger.open(target.ledger) as ledger:
        ledger.trim(position)
    force(target.ledger)  # closing it moved its log into it
