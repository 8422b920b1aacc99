"""Job records on disk: one JSON file each, replaced atomically."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import orjson

from tercet.index.documents.datetimes import time_now
from tercet.index.files.directory import write_json_atomically
from tercet.index.live.adoption import AdoptionMode
from tercet.index.wording import reason_of
from tercet.ingest.progress import Phase
from tercet.ingest.sources.checks import OnError

JobEngine = Literal["local", "ray"]
JobState = Literal["queued", "running", "succeeded", "failed", "cancelled"]
ENDED: tuple[JobState, ...] = ("succeeded", "failed", "cancelled")
KEPT_JOBS = 500

log = logging.getLogger("tercet")


@dataclass(frozen=True, slots=True)
class Job:
    """A batch build: what was asked, how far it is, how it ended. Times are ISO 8601, in UTC.

    `documents_total` is None where only reading the whole source would tell. `phase`: what the build does
    or did last, None before; `fraction`, from 0 to 1, is the share of it that is done. `skips` says where the
    first skipped records are.
    `reading` has how the source is read, by name, as far as that was said. `engine`: what encodes, a process
    of this machine or the workers of a Ray cluster.
    """

    id: str
    collection: str
    source: str | Sequence[str]
    created_at: str
    state: JobState = "queued"
    documents_done: int = 0
    documents_total: int | None = None
    phase: Phase | None = None
    fraction: float = 0.0
    tokens: int = 0
    on_error: OnError = "stop"
    reading: Mapping[str, Any] = field(default_factory=dict)
    adapter: str | None = None
    mode: AdoptionMode = "replace"
    engine: JobEngine = "local"
    skipped: int = 0
    skips: Sequence[str] = ()
    truncated: int = 0
    snapshot: str | None = None
    error: str | None = None
    started_at: str | None = None
    finished_at: str | None = None

    @property
    def sources(self) -> list[str]:
        """The files and folders that are read."""
        return [self.source] if isinstance(self.source, str) else list(self.source)

    @property
    def finished(self) -> bool:
        return self.state in ENDED

    def to_json(self) -> bytes:
        """The job as answers show it: without the copies that a dictionary of it would take."""
        return orjson.dumps(self)

    def ended(self, state: JobState, error: str | None = None) -> Job:
        """The job, finished now."""
        return replace(self, state=state, error=error, finished_at=time_now())


class JobStore:
    """The records of all jobs below one folder, the oldest finished ones dropped past KEPT_JOBS."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._jobs: dict[str, Job] = {}

    def load(self) -> None:
        """Reads the folder; a record that cannot be read is logged and left alone."""
        self._folder.mkdir(parents=True, exist_ok=True)
        loaded = []
        for path in self._folder.glob("*.json"):
            try:
                loaded.append(_job_of(json.loads(path.read_bytes())))
            except (ValueError, TypeError, OSError) as error:
                log.warning("job record %s cannot be read and is ignored: %s", path, reason_of(error))
        self._jobs = {job.id: job for job in sorted(loaded, key=lambda job: (job.created_at, job.id))}

    def get(self, job_id: str) -> Job | None:
        return self._jobs.get(job_id)

    def list(self) -> list[Job]:
        """All jobs, the newest first."""
        return list(reversed(self._jobs.values()))

    def keep(self, job: Job) -> tuple[str, ...]:
        """Keeps a record in memory; returns the ids of finished ones that had to make room."""
        self._jobs[job.id] = job
        excess = max(0, len(self._jobs) - KEPT_JOBS)
        dropped = tuple(kept.id for kept in self._jobs.values() if kept.finished)[:excess]
        for job_id in dropped:
            del self._jobs[job_id]
        return dropped

    def write(self, job: Job, dropped: Iterable[str] = ()) -> None:
        """Puts a record on disk, before returning, and removes dropped ones. Touches nothing in memory."""
        write_json_atomically(self._folder / f"{job.id}.json", asdict(job))
        for job_id in dropped:
            (self._folder / f"{job_id}.json").unlink(missing_ok=True)


def _job_of(record: dict[str, Any]) -> Job:
    """A job from its record. Raises TypeError for what is none."""
    record.pop("indexed", None)  # of records from before there were phases
    return Job(**record)
