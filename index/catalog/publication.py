"""The step that makes a manifest the current one: it happened, it did not, or that cannot be told."""

from __future__ import annotations

from typing import Literal

from tercet.index.catalog.layout import CollectionLayout
from tercet.index.catalog.manifest import Manifest
from tercet.index.errors import DamagedIndexError, UnforcedPublicationError
from tercet.index.files.directory import write_atomically
from tercet.index.wording import failure_text
from tercet.models.files import force

Outcome = Literal["unpublished", "unknown", "durable"]


class Publication:
    """Publishes one manifest of a collection whose lock the caller holds.

    outcome: "durable" once the publication lasts through a loss of power; "unknown" while it is under way,
    and where it may have happened but could not be forced to the disk: both snapshots may be needed then.
    """

    def __init__(self, layout: CollectionLayout, collection: str, manifest: Manifest) -> None:
        self.manifest = manifest
        self.outcome: Outcome = "unpublished"
        self._layout = layout
        self._collection = collection

    def publish(self) -> None:
        """Forces the names of its segments and marks, which are complete, writes the manifest, and renames
        its name to CURRENT.

        Raises UnforcedPublicationError where the snapshot is current, but that could not be forced to the
        disk. After any other exception the former snapshot is current.
        """
        force(self._layout.segments)
        if any(entry.deletes is not None for entry in self.manifest.segments):
            force(self._layout.deletes)
        self.manifest.write(self._layout.manifest(self.manifest.name))
        self.outcome = "unknown"  # whatever interrupts from here on
        try:
            write_atomically(self._layout.current, [f"{self.manifest.name}\n".encode()])
        except BaseException as error:
            renamed = self._is_renamed()
            if renamed is False:
                self.outcome = "unpublished"
                raise
            if renamed is None or not isinstance(error, KeyboardInterrupt):
                raise self._unforced(error, renamed) from error
            try:  # readers see it already: finish
                force(self._layout.folder)
            except OSError as failure:
                raise self._unforced(failure, renamed) from failure
        self.outcome = "durable"

    def _is_renamed(self) -> bool | None:
        """Whether CURRENT has the new name; None where it cannot be read."""
        try:
            return self._layout.read_current() == self.manifest.name
        except DamagedIndexError:  # as it was before
            return False
        except OSError:
            return None

    def _unforced(self, error: BaseException, renamed: bool | None) -> UnforcedPublicationError:
        return UnforcedPublicationError(
            f"snapshot {self.manifest.name} of collection {self._collection!r} "
            f"{'was' if renamed else 'may be'} published, but that was not forced to the disk "
            f"({failure_text(error)}); a "
            "loss of power may bring the former one back, so the files of both are kept: see to the disk, "
            "then build again"
        )
