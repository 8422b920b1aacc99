"""A collection that follows published snapshots: the next is put together beside, then switched to.

Its folder stays a collection of the index, in which `CURRENT` decides what is searched; `followed.json` says
which snapshot of which URL it is. Segments that two snapshots share are neither fetched nor opened
again. What was put together stays until it is switched to, so that the next start can finish after a crash.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from tercet.cluster.objects.store import ObjectStore
from tercet.cluster.snapshots.errors import NotContinuedError, NotFollowedError
from tercet.cluster.snapshots.fetching import fetch, remove_fetched
from tercet.cluster.snapshots.pulling import files_here
from tercet.cluster.snapshots.record import PublishedSnapshot
from tercet.cluster.snapshots.stages import stage
from tercet.cluster.snapshots.transfers import BytesDone
from tercet.cluster.snapshots.warming import warm
from tercet.index.backups.copying import begin_ledger
from tercet.index.catalog.aliases import Aliases
from tercet.index.catalog.layout import CollectionLayout
from tercet.index.catalog.lineage import Lineage
from tercet.index.catalog.manifest import Manifest
from tercet.index.catalog.remains import remove_all_but, remove_unfinished
from tercet.index.catalog.settings import CODEBOOK_FILE, CollectionSettings
from tercet.index.collection import Collection
from tercet.index.dense.kinds import Device
from tercet.index.errors import DamagedIndexError
from tercet.index.files.content import read_json_object
from tercet.index.files.directory import (
    link_folder,
    link_or_copy,
    make_folder,
    put_in_place,
    remove_file,
    write_atomically,
    write_json_atomically,
)
from tercet.index.snapshot import Snapshot
from tercet.index.verified import note_verified
from tercet.models.files import force
from tercet.service.collections.registry import CollectionRegistry

PURPOSE = "follow"
FILE = "followed.json"
REMEDY = "remove the collection's folder, which is then fetched again"


@dataclass(frozen=True, slots=True)
class Followed:
    """Which snapshot a collection's folder holds. pushed: when it was published, ISO 8601 in UTC; id: of that
    publication, None of an older release.
    """

    url: str
    number: int
    pushed: str
    id: str | None = None

    @staticmethod
    def of(folder: Path) -> Followed | None:
        """What a collection's folder says, None where it is followed by nobody. Raises DamagedIndexError."""
        with suppress(FileNotFoundError, NotADirectoryError):
            record = read_json_object(folder / FILE, REMEDY)
            try:
                datetime.fromisoformat(record["pushed"]).astimezone(UTC)
                return Followed(str(record["url"]), int(record["number"]), record["pushed"], record.get("id"))
            except (KeyError, TypeError, ValueError) as error:
                raise DamagedIndexError(f"{folder / FILE}: no record of this release; {REMEDY}") from error
        return None

    def write(self, folder: Path) -> None:
        """Writes it into a collection's folder."""
        write_json_atomically(folder / FILE, asdict(self))

    def is_of(self, published: PublishedSnapshot, url: str) -> bool:
        """Whether it is this snapshot of a URL: its number tells that of what an older release took up."""
        id = published.id if self.id is not None else None
        return (self.url, self.number, self.id) == (url, published.number, id)

    @property
    def age_seconds(self) -> float:
        """Since it was published, by the clocks of both machines."""
        return max(0.0, (datetime.now(UTC) - datetime.fromisoformat(self.pushed)).total_seconds())


def take_up(
    store: ObjectStore,
    published: PublishedSnapshot,
    collections: CollectionRegistry,
    stages: Path,
    progress: BytesDone,
) -> Followed:
    """Makes a published snapshot the current one of its collection; until then the former one is searched.

    Raises NotFollowedError where the data root has a collection of this name of its own, and what `fetch`
    and the opening of a snapshot raise; then all is as before.
    """
    name = published.collection
    here = CollectionLayout(collections.root / name)
    _require_followed(here, store.url, name)
    followed = Followed(store.url, published.number, published.pushed, published.id)
    with stage(stages, PURPOSE, name) as layout:
        existing = Collection.open(collections.root, name) if here.settings.exists() else None
        if existing is not None:
            _remove_left(existing)
        here_already = {} if existing is None else files_here(existing)
        fetch(store, published, layout, here_already, progress, trusted=True)
        if existing is None:
            _begin(layout, here, published, followed)
            warm(collections.snapshot(name))
        else:
            followed.write(layout.folder)
            settings, manifest = _link(layout, here)
            collections.replace(
                name,
                lambda device, former: _opened(here, settings, manifest, device, former),
                lambda: _make_current(layout, here),
            )
            remove_all_but(here, manifest)
        remove_fetched(layout)
    return followed


def require_continued(published: PublishedSnapshot, root: Path) -> None:
    """Raises NotContinuedError where the collection that follows has writes that a snapshot has not."""
    here = CollectionLayout(root / published.collection)
    manifest = Collection.named(root, published.collection).manifest() if here.settings.exists() else None
    reached = 0 if manifest is None else manifest.ledger_position
    if manifest is None or published.goes_on_from(Lineage.read(here.folder), reached):
        return
    raise NotContinuedError(
        f"snapshot {published.name}, at position {published.manifest.ledger_position}, is of another "
        f"collection of this name, or lacks writes up to position {reached} that are served here, and was "
        f"not pushed with --force, so it is not taken up: see where they were lost, or remove {here.folder} "
        "to follow it"
    )


def finish_interrupted(root: Path, stages: Path) -> None:
    """Switches to what was put together completely when its server was killed."""
    for path in stages.glob(f"{PURPOSE}-*/collection/{FILE}"):
        layout = CollectionLayout(path.parent)
        here = CollectionLayout(root / path.parent.parent.name.removeprefix(f"{PURPOSE}-"))
        if here.settings.exists():
            _, manifest = _link(layout, here)
            _make_current(layout, here)
            remove_all_but(here, manifest)


def _require_followed(here: CollectionLayout, url: str, name: str) -> None:
    if not here.settings.exists():
        Aliases(here.folder.parent).require_free(name)
        return
    found = Followed.of(here.folder)
    if found is None or found.url != url:
        whose = "of its own" if found is None else f"that follows {found.url}"
        raise NotFollowedError(
            f"the data root has a collection {name!r} {whose}, so it does not follow {url}: give this server "
            f"a data root of its own (--data), or remove {here.folder}"
        )


def _remove_left(existing: Collection) -> None:
    """Removes what a take-up that failed left in the collection's folder."""
    remove_unfinished(existing.layout)
    manifest = existing.manifest()
    if manifest is not None:
        remove_all_but(existing.layout, manifest)


def _begin(
    layout: CollectionLayout, here: CollectionLayout, published: PublishedSnapshot, followed: Followed
) -> None:
    """Gives a collection that is not here yet its name."""
    begin_ledger(layout, published.manifest.ledger_position)
    followed.write(layout.folder)
    note_verified(layout)
    make_folder(here.folder.parent)
    put_in_place(layout.folder, here.folder)


def _link(layout: CollectionLayout, here: CollectionLayout) -> tuple[CollectionSettings, Manifest]:
    """Gives the collection all files of the next snapshot, which nothing there names yet."""
    name = layout.read_current()
    manifest = Manifest.read(layout.manifest(str(name)))
    for entry in manifest.segments:
        if not here.segment(entry.id).exists():
            link_folder(layout.segment(entry.id), here.segment(entry.id), sorted(entry.files))
        if entry.deletes is not None and not (here.deletes / entry.deletes.file).exists():
            link_or_copy(layout.deletes / entry.deletes.file, here.deletes / entry.deletes.file)
    force(here.segments)
    force(here.deletes)
    manifest.write(here.manifest(manifest.name))
    return CollectionSettings.read(layout.settings), manifest


def _opened(
    here: CollectionLayout,
    settings: CollectionSettings,
    manifest: Manifest,
    device: Device,
    former: Snapshot | None,
) -> Snapshot:
    """The next snapshot, over the open segments that it shares, searched once."""
    shared = {} if former is None or former.settings != settings else former.published_segments()
    snapshot = Snapshot.open(here, settings, manifest.name, device, shared)
    warm(snapshot)
    return snapshot


def _make_current(layout: CollectionLayout, here: CollectionLayout) -> None:
    """Switches a collection's folder to the snapshot that was put together, whose segments it has."""
    for path in (here.folder / CODEBOOK_FILE, here.settings, here.current):
        _replace(layout.folder / path.name, path)
    for path in (here.lineage, here.fields, here.defaults, here.effort, here.folder / FILE):
        _replace(layout.folder / path.name, path)


def _replace(source: Path, target: Path) -> None:
    """Makes a small file hold what another one does, or removes it where there is no other."""
    content = source.read_bytes() if source.exists() else None
    if content is None:
        remove_file(target)
    elif not target.exists() or target.read_bytes() != content:
        write_atomically(target, [content])
