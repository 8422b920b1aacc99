"""Publishes what a collection holds: the one place where segments and manifests get their names.

Builds, flushes, merges, adoptions and declarations of fields differ in which segments they write. How one
becomes part of the collection is the same for all: it is named and kept from removal, gets the dense kind of
the collection, is opened as readers will open it, and counts once a manifest that names it is current.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace

from tercet.index.catalog.layout import EMPTY_NAME, CollectionLayout
from tercet.index.catalog.manifest import Manifest, SegmentEntry, is_manifest_name, segment_id
from tercet.index.catalog.publication import Outcome, Publication
from tercet.index.catalog.remains import remove_all_but, remove_unfinished, remove_written
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.dense.kinds import Device, Vectors, segment_kind
from tercet.index.errors import DamagedIndexError
from tercet.index.segments.deletes import write_deletes
from tercet.index.segments.rows import DocumentRows
from tercet.index.segments.segment import Segment
from tercet.index.segments.writer import FilledSegment, SegmentWriter
from tercet.models.files import force
from tercet.models.representations import Int64

FIRST = Manifest(EMPTY_NAME, "", ())


class Publisher:
    """Writes segments and publishes manifests, under the collection's lock, which the caller holds.

    lock: held from the moment that a new manifest's content is known until the live state has it, too, so
    that the segments of both are the same, in order, for one who holds it. Segments may be written without.
    manifest: the current one; one without segments, called EMPTY_NAME, where there is none that is sound.
    settings: of the collection, which a declaration of fields replaces. outcome: of the last publication.
    """

    def __init__(
        self,
        layout: CollectionLayout,
        settings: CollectionSettings,
        manifest: Manifest | None,
        device: Device = "cpu",
        last: str | None = None,
    ) -> None:
        """last: the name after which the next manifest's comes, by default that of the current one."""
        self.layout = layout
        self.settings = settings
        self._device: Device = device
        self.lock = threading.Lock()
        self.manifest = manifest or FIRST
        self.outcome: Outcome = "unpublished"
        self._unnamed: set[str] = set()  # segments that are being written
        self._number = int(last or self.manifest.name)
        for folder in (layout.segments, layout.manifests):
            folder.mkdir(exist_ok=True)
        force(layout.folder)  # also a renaming that a former writer could not force
        remove_unfinished(layout)

    @staticmethod
    def of_build(layout: CollectionLayout, settings: CollectionSettings) -> Publisher:
        """One that replaces all that is there, and so needs none of it to be sound.

        Removes what killed writers left. Where no sound manifest is current, perhaps as CURRENT was lost, any
        complete segment may be needed to restore it: all stay until a publication has succeeded. `verify`
        reports what is damaged.
        """
        current, manifest = _current(layout)
        names = [path.stem for path in layout.manifests.glob("*") if is_manifest_name(path.stem)]
        if current is not None:  # its manifest may be lost
            names.append(current)
        publisher = Publisher(layout, settings, manifest, last=max(names, key=int, default=None))
        if manifest is not None:
            publisher.remove_former()
        return publisher

    @property
    def next_name(self) -> str:
        """The name of the next manifest; but for the first, a publication that failed has used its own."""
        return f"{self._number + 1:06d}"

    @contextmanager
    def naming(self, count: int, mark: str | None = None) -> Iterator[list[str]]:
        """Ids of so many segments to come, whose folders stay while the context lasts, named by a manifest or
        not. mark: what they end with, by default random.
        """
        mark = mark or secrets.token_hex(4)
        ids = [segment_id(self.next_name, number, mark) for number in range(count)]
        self._unnamed.update(ids)
        try:
            yield ids
        finally:
            self._unnamed.difference_update(ids)

    def begin(self, number: int, mark: str) -> SegmentWriter:
        """A segment of a build to come: the one of this number, with the build's mark."""
        identifier = segment_id(self.next_name, number, mark)
        return SegmentWriter(self.layout.segments, identifier, self.settings)

    @contextmanager
    def writing(
        self,
        rows: Iterable[DocumentRows],
        others: Vectors,
        scanned: int,
        settings: CollectionSettings,
        require_going: Callable[[], None] = lambda: None,
    ) -> Iterator[tuple[SegmentEntry, Segment]]:
        """Writes a new segment and opens it; its files stay while the context lasts.

        others, scanned: as for `finished`. settings: those whose fields the rows have, which a declaration
        may have replaced meanwhile. require_going: may raise to end that.
        """
        with self.naming(1) as (identifier,):
            writer = SegmentWriter(self.layout.segments, identifier, settings)
            try:
                for some in rows:
                    require_going()
                    writer.append(some)
                filled = writer.end()
            finally:
                writer.close()
            (finished,) = self.finished([filled], others, scanned, lambda _: require_going())
            yield finished

    def finished(
        self,
        segments: Sequence[FilledSegment],
        others: Vectors,
        scanned: int,
        inserted: Callable[[int], None],
    ) -> Iterator[tuple[SegmentEntry, Segment]]:
        """Segments with the dense kind of the collection, each opened as readers will.

        others: the vectors of segments beside them; scanned: with the dense kind auto one has no graph or
        lists where it has fewer vectors; inserted: as for `FilledSegment.finish`. Raises DamagedIndexError
        naming the file for one that cannot be opened.
        """
        coming = sum(filled.encodings for filled in segments)
        for filled in segments:
            settings = filled.settings
            kind, _ = settings.collection_kind(others, coming)
            kind = segment_kind(kind, settings.dense_kind, filled.encodings, scanned)
            entry = filled.finish(kind, inserted)
            yield entry, self.open(entry, settings)

    def open(self, entry: SegmentEntry, settings: CollectionSettings | None = None) -> Segment:
        """A segment that was just written, as readers will open it. Raises DamagedIndexError naming the file.

        settings: those whose fields it has, by default the collection's.
        """
        try:
            return Segment.open(self.layout, entry, settings or self.settings, self._device)
        except DamagedIndexError as error:
            raise DamagedIndexError(
                f"a segment cannot be opened as it was just written, so nothing was published: {error}"
            ) from error

    def marked(self, entry: SegmentEntry, deleted: Int64) -> SegmentEntry:
        """The entry with these rows deleted, ascending: in a new file where they are more than it has."""
        if len(deleted) == entry.documents - entry.documents_kept:
            return entry
        return replace(entry, deletes=write_deletes(self.layout, entry.id, self.next_name, deleted))

    def publish(self, entries: Sequence[SegmentEntry], ledger_position: int) -> None:
        """Makes a manifest of these segments the current one, which holds the operations up to a position.

        What it does not name is removed by `remove_former`, once nobody of this process needs it. Raises as
        `Publication.publish`.
        """
        manifest = Manifest(self.next_name, self.settings.sha256, tuple(entries), ledger_position)
        publication = Publication(self.layout, self.settings.name, manifest)
        try:
            publication.publish()
        finally:
            self.outcome = publication.outcome
            # A manifest above the first one without CURRENT would look to readers as if that were lost.
            if self.manifest is not FIRST or self.outcome != "unpublished":
                self._number += 1
        self.manifest = manifest

    def remove_former(self) -> None:
        """Removes the files that the current manifest does not name; open ones stay mapped."""
        remove_all_but(self.layout, self.manifest, self._unnamed)

    def remove_left(self, name: str, mark: str) -> None:
        """Removes what the outcome of a build leaves over: the former snapshot, or what was not published of
        this name, with this mark. Where that is unknown, both snapshots stay.
        """
        remove_unfinished(self.layout)
        if self.outcome == "durable":
            self.remove_former()
        elif self.outcome == "unpublished":
            remove_written(self.layout, name, mark)


def _current(layout: CollectionLayout) -> tuple[str | None, Manifest | None]:
    """The name in CURRENT and its manifest, each None where it is missing or damaged."""
    name = None
    with suppress(DamagedIndexError):
        name = layout.read_current()
        return name, None if name is None else Manifest.read(layout.manifest(name))
    return name, None
