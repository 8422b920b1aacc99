"""How a job ended whose build did not say: its collection tells whether it published."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

from tercet.index.catalog.manifest import Manifest
from tercet.index.collection import Collection
from tercet.index.errors import CollectionNotFoundError, SearchIndexError
from tercet.service.jobs.store import Job, JobState

log = logging.getLogger("tercet")


def settled(collections_root: Path, job: Job, state: JobState, error: str | None) -> Job:
    """The job, succeeded where its collection serves what it built; else ended in this state.

    A build that has published may still be killed, or its service, before either could record that.
    """
    manifest = _published(collections_root, job)
    if manifest is None:
        return job.ended(state, error)
    return replace(
        job,
        snapshot=manifest.name,
        documents_done=manifest.documents,
        documents_total=manifest.documents,
        fraction=1.0,
        tokens=manifest.tokens,
    ).ended("succeeded")


def _published(collections_root: Path, job: Job) -> Manifest | None:
    try:
        manifest = Collection.open(collections_root, job.collection).manifest()
    except CollectionNotFoundError:
        return None
    except SearchIndexError as error:
        log.warning("job %s: its collection cannot be read: %s", job.id, error)
        return None
    return manifest if manifest is not None and manifest.is_marked(job.id) else None
