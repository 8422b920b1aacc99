"""A build beside the writes of a collection: a child makes it, and the server takes it over."""

from __future__ import annotations

import shutil
from contextlib import suppress

from tercet.index.catalog.layout import CollectionLayout
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.collection import Collection
from tercet.index.errors import CollectionNotFoundError, SearchIndexError
from tercet.ingest.passages.former import former_passages
from tercet.service.collections.registry import CollectionRegistry
from tercet.service.jobs.store import Job


class StagedBuild:
    """The stage of one job. Its methods block."""

    def __init__(self, collections: CollectionRegistry, job: Job) -> None:
        """Opens the collection to be written to, and takes note of what is written and deleted from now on.

        Raises CollectionNotFoundError, CollectionBusyError, DamagedIndexError, StorageError or OSError.
        """
        self._collections = collections
        self._job = job
        layout = Collection.open(collections.root, job.collection).layout
        self._stage = CollectionLayout(layout.builds / job.id)
        with collections.writing(job.collection) as live:
            self._live = live
            self._build = live.begin_build()

    @staticmethod
    def of(collections: CollectionRegistry, job: Job) -> StagedBuild | None:
        """The stage of a job; None where its collection does not exist yet, so that nobody writes it."""
        try:
            return StagedBuild(collections, job)
        except CollectionNotFoundError:
            return None

    def adopt(self) -> str:
        """Publishes what the child has built; returns the snapshot's name.

        Raises CollectionNotFoundError where the collection was deleted since, DamagedIndexError, OSError or
        UnforcedPublicationError.
        """
        with self._collections.writing(self._job.collection) as live:
            if live is not self._live:
                raise CollectionNotFoundError(
                    f"collection {self._job.collection!r} was deleted or created anew during the build; "
                    "nothing was published"
                )
            former: list[str] = []
            if self._job.mode == "upsert" and self._job.reading.get("split") is not None:
                settings = CollectionSettings.read(self._stage.settings)
                former = former_passages(live.snapshot(), Collection(self._stage, settings))
            return live.adopt(self._build, self._stage, self._job.mode, self._job.id, former)

    def close(self) -> None:
        """Removes the stage, and ends the taking of notes."""
        with suppress(SearchIndexError):  # the collection was closed
            self._build.close()
        shutil.rmtree(self._stage.folder, ignore_errors=True)
