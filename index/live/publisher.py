"""The manifests of one live collection, one after the other."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from index.catalog.layout import CollectionLayout
from index.catalog.manifest import Manifest, SegmentEntry, segment_id
from index.catalog.publication import Publication
from index.catalog.remains import remove_all_but, remove_builds, remove_unfinished
from index.catalog.settings import CollectionSettings
from index.dense.kinds import Device, Vectors, segment_kind
from index.files.directory import force
from index.segments.rows import DocumentRows
from index.segments.segment import Segment
from index.segments.writer import SegmentWriter
from index.snapshot import EMPTY_NAME

FIRST = Manifest(EMPTY_NAME, "", ())


class Publisher:
    """Writes segments and publishes manifests, under the collection's lock.

    lock: held from the moment that a new manifest's content is known until the live state has it, too, so
    that the segments of both are the same, in order, for one who holds it. Segments may be written without.
    manifest: the current one; one without segments, called EMPTY_NAME, before the first publication.
    settings: of the collection, which a declaration of fields replaces.
    """

    def __init__(
        self,
        layout: CollectionLayout,
        settings: CollectionSettings,
        manifest: Manifest | None,
        device: Device = "cpu",
    ) -> None:
        self.layout = layout
        self.settings = settings
        self._device: Device = device
        self.lock = threading.Lock()
        self.manifest = manifest or FIRST
        self._unnamed: set[str] = set()  # segments that are being written
        self._number = int(self.manifest.name)
        for folder in (layout.segments, layout.manifests):
            folder.mkdir(exist_ok=True)
        force(layout.folder)  # also a renaming that a former writer could not force
        remove_unfinished(layout)
        remove_builds(layout)

    @property
    def next_name(self) -> str:
        """The name of the next manifest; but for the first, a publication that failed has used its own."""
        return f"{self._number + 1:06d}"

    @contextmanager
    def keeping(self, ids: Sequence[str]) -> Iterator[None]:
        """Segments of these ids stay while the context lasts, named by a manifest or not."""
        self._unnamed.update(ids)
        try:
            yield
        finally:
            self._unnamed.difference_update(ids)

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

        others: what the segments beside it have; scanned: with the dense kind auto it has no graph or lists
        where it has fewer vectors. settings: those whose fields the rows have, which a declaration may have
        replaced meanwhile. require_going: may raise to end that.
        """
        identifier = segment_id(self.next_name, 0, secrets.token_hex(4))
        with self.keeping([identifier]):
            writer = SegmentWriter(self.layout.segments, identifier, settings)
            try:
                for some in rows:
                    require_going()
                    writer.append(some)
                filled = writer.end()
            finally:
                writer.close()
            kind, _ = settings.collection_kind(others, filled.encodings)
            kind = segment_kind(kind, settings.dense_kind, filled.encodings, scanned)
            entry = filled.finish(kind, lambda _: require_going())
            yield entry, Segment.open(self.layout, entry, settings, self._device)

    def open(self, entry: SegmentEntry) -> Segment:
        """A segment as readers will open it. Raises DamagedIndexError naming the file."""
        return Segment.open(self.layout, entry, self.settings, self._device)

    def publish(self, entries: Sequence[SegmentEntry], ledger_position: int) -> None:
        """Makes a manifest of these segments the current one.

        What it does not name is removed by `remove_former`, once nobody of this process needs it.
        """
        manifest = Manifest(self.next_name, self.settings.sha256, tuple(entries), ledger_position)
        publication = Publication(self.layout, self.settings.name, manifest)
        try:
            publication.publish()
        finally:
            # A manifest above the first one without CURRENT would look to readers as if that were lost.
            if self.manifest is not FIRST or publication.outcome != "unpublished":
                self._number += 1
        self.manifest = manifest

    def remove_former(self) -> None:
        """Removes the files that the current manifest does not name; open ones stay mapped."""
        remove_all_but(self.layout, self.manifest, self._unnamed)
