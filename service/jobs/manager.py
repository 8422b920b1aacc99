"""Batch index builds: a queue of jobs, one build at a time, records that survive a restart."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import uuid
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tercet.index.collection import Collection
from tercet.index.documents.datetimes import time_now
from tercet.index.errors import CollectionNotFoundError, FingerprintMismatchError
from tercet.index.live.adoption import AdoptionMode
from tercet.index.wording import reason_of
from tercet.ingest.encoder_match import require_model
from tercet.ingest.sources.checks import OnError
from tercet.service.collections.registry import CollectionRegistry
from tercet.service.encoding.shelf import EncoderShelf
from tercet.service.errors import failure_of
from tercet.service.exceptions import InvalidRequestError, NotFoundError, OverloadedError
from tercet.service.jobs.outcome import settled
from tercet.service.jobs.process import BuildLock, BuildProcess
from tercet.service.jobs.sources import confined_sources
from tercet.service.jobs.staging import StagedBuild
from tercet.service.jobs.store import Job, JobEngine, JobState, JobStore
from tercet.service.load.pools import Pool

MAX_QUEUED = 100
_PROGRESS = (
    "documents_done",
    "documents_total",
    "phase",
    "fraction",
    "tokens",
    "skipped",
    "skips",
    "truncated",
)
_INTERRUPTED = "interrupted by a restart of the service; nothing of it is served, submit the job again"
_LEFTOVER_PAUSE_SECONDS = 0.2

log = logging.getLogger("tercet")


def no_job(job_id: str) -> NotFoundError:
    """What is raised where there is no such job, or it is nobody's business."""
    return NotFoundError(f"no job {job_id!r}; GET /jobs lists them", "job_not_found")


class JobManager:
    """Runs submitted builds one after the other, in order of submission.

    A second job for a collection waits for the first and then replaces what it published. Use from one
    event loop; call `start` first and `stop` last.
    """

    def __init__(
        self,
        data: Path,
        collections: CollectionRegistry,
        encoders: EncoderShelf,
        environment: Mapping[str, str],
        pool: Pool,
        ended: Callable[[JobState], None] = lambda _: None,
        *,
        ray: bool = False,
    ) -> None:
        """data: the data root; collections: those of it, which builds are taken over by; encoders:
        what the service encodes with; environment: variables that make a child use the same own encoder and
        adapters; pool: for reading and writing files; ended: is told how each job ends; ray: whether the
        environment names a Ray cluster that can encode.
        """
        self._data = data.resolve()
        self._collections = collections
        self._encoders = encoders
        self._environment = environment
        self._pool = pool
        self._ended = ended
        self._ray = ray
        self._store = JobStore(self._data / "jobs")
        self._build_lock = BuildLock(self._data / "jobs")
        self._queue: deque[str] = deque()
        self._checkpoints: dict[str, str] = {}  # of queued jobs with another encoder than the service's own
        self._wake = asyncio.Event()
        self._changed = asyncio.Condition()
        self._running: tuple[str, BuildProcess] | None = None
        self._cancelled: set[str] = set()
        self._worker: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Reads the records. Jobs that waited when the service ended are failed.

        The one that ran is settled when its process has ended, which may outlive the service by some seconds.
        """
        await self._pool.run(self._store.load)
        for job in self._store.list():
            if job.state == "queued":
                await self._record(job.ended("failed", _INTERRUPTED))
        self._worker = asyncio.create_task(self._work(), name="jobs")

    async def stop(self) -> None:
        """Ends the running build; it and the waiting ones are failed as interrupted."""
        if self._worker is None:
            return
        self._worker.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._worker
        self._worker = None
        if await self._pool.run(self._build_lock.is_free):
            await self._settle_interrupted("queued", "running")

    async def submit(
        self,
        collection: str,
        source: str | Sequence[str],
        encoder: str | None = None,
        on_error: OnError = "stop",
        adapter: str | None = None,
        mode: AdoptionMode = "replace",
        reading: Mapping[str, Any] | None = None,
        engine: JobEngine = "local",
    ) -> Job:
        """Queues a build from a file or folder below `sources/` of the data root, or from several.

        collection: its name, or an alias, which stands for what it means now. encoder and adapter: of a
        collection that is new, the encoder by name or fingerprint and by default the service's own; one that
        exists goes with its own. on_error: what a bad record does. mode: by default the source's documents
        replace all others, but for what is written after the build began; `upsert` leaves those with other
        ids. reading: how the source is read, by the names of `tercet.service.schemas.jobs.ReadingRequest`.
        engine: what encodes: a process of this machine, or the workers of a Ray cluster.
        Raises InvalidRequestError for the source, and for the engine ray where there is no cluster for it,
        FingerprintMismatchError where another encoder or adapter is asked for than the collection's,
        AdapterNotFoundError, InvalidNameError, OverloadedError where too many jobs wait.
        """
        if engine == "ray" and not self._ray:
            raise InvalidRequestError(
                "engine ray takes a server with a Ray cluster (TERCET_RAY_ADDRESS, TERCET_RAY_STORAGE) and "
                "an encoder of its own, which this one has not: leave it out, or ask for local",
                "engine",
                "unsupported",
            )
        sources = [source] if isinstance(source, str) else source
        collection, adapter, checkpoint = await self._check(collection, encoder, adapter)
        await self._paths(sources, reading or {})
        if len(self._queue) >= MAX_QUEUED:
            raise OverloadedError(
                f"{MAX_QUEUED} jobs wait already, the limit; cancel some or try later", 60, "jobs"
            )
        options: dict[str, Any] = {"on_error": on_error, "adapter": adapter, "mode": mode, "engine": engine}
        job = Job(uuid.uuid4().hex, collection, source, time_now(), reading=dict(reading or {}), **options)
        # Once begun this must be finished, even if the client that asked for it goes away.
        await asyncio.shield(self._enqueue(job, checkpoint))
        return job

    def get(self, job_id: str) -> Job:
        """Raises NotFoundError."""
        job = self._store.get(job_id)
        if job is None:
            raise no_job(job_id)
        return job

    def list(self) -> list[Job]:
        """All jobs, the newest first."""
        return self._store.list()

    async def cancel(self, job_id: str) -> Job:
        """Ends a waiting or running job, and returns it once it has ended; a finished one stays as it is.

        What the collection served before stays. Raises NotFoundError.
        """
        job = self.get(job_id)
        if job.state == "queued" and job_id in self._queue:
            self._queue.remove(job_id)
            self._checkpoints.pop(job_id, None)
            await self._record(job.ended("cancelled"))
        elif not job.finished:
            self._cancelled.add(job_id)
            if self._running is not None and self._running[0] == job_id:
                await asyncio.shield(self._running[1].stop())
            async with self._changed:
                await self._changed.wait_for(lambda: self.get(job_id).finished)
        return self.get(job_id)

    async def _enqueue(self, job: Job, checkpoint: str | None) -> None:
        try:
            await self._save(job)
        except OSError as error:
            self._store.keep(job.ended("failed", f"its record cannot be written: {reason_of(error)}"))
            self._ended("failed")
            raise
        if checkpoint is not None:
            self._checkpoints[job.id] = checkpoint
        self._queue.append(job.id)
        self._wake.set()

    async def _check(
        self, collection: str, encoder: str | None, adapter: str | None
    ) -> tuple[str, str | None, str | None]:
        """The collection's name, the adapter that the build goes with, and what opens the encoder of a new
        collection that is not the service's own; one that exists says it itself.
        """
        checkpoint = None
        try:
            opened = await self._pool.run(Collection.open, self._data / "collections", collection)
        except CollectionNotFoundError:
            encoding = await self._encoders.named(encoder)
            if encoding is None:
                own, *others = await self._encoders.names()
                also = "".join(f", {name!r}" for name in others)
                raise FingerprintMismatchError(
                    f"the job asks for encoder {encoder!r:.100}, and this service has {own!r} (fingerprint "
                    f"{self._encoders.own.info.fingerprint}){also}: leave it out, or name one of these"
                ) from None
            info = await encoding.info_of(adapter, collection)
            if encoding is not self._encoders.own:
                checkpoint = info.checkpoint or info.name
        else:
            require_model(opened.settings, encoder)
            encoding = await self._encoders.of_collection(opened.settings, adapter)
            info = await encoding.info_of(opened.settings.adapter)
            collection = opened.settings.name
        return collection, info.adapter, checkpoint

    async def _paths(self, sources: Sequence[str], reading: Mapping[str, Any]) -> Sequence[Path]:
        """The files and folders of a job. Raises InvalidRequestError."""
        root = self._data / "sources"
        return await self._pool.run(confined_sources, root, sources, reading.get("format"))

    async def _work(self) -> None:
        await self._settle_leftover()
        while True:
            while self._queue:
                await self._run(self.get(self._queue.popleft()))
            self._wake.clear()
            await self._wake.wait()

    async def _run(self, job: Job) -> None:
        job = replace(job, state="running", started_at=time_now())
        try:
            await self._save(job)
            job = await self._build(job)
        except Exception as error:
            log.error("job %s failed", job.id, exc_info=error)
            job = await self._settled(self.get(job.id), "failed", failure_of(error).message)
        finally:
            self._running = None
        await self._record(job)
        self._cancelled.discard(job.id)
        self._checkpoints.pop(job.id, None)

    async def _build(self, job: Job) -> Job:
        staged = await self._pool.run(StagedBuild.of, self._collections, job)
        try:
            return await self._build_in(job, staged)
        finally:
            if staged is not None:
                await asyncio.shield(self._pool.run(staged.close))

    async def _build_in(self, job: Job, staged: StagedBuild | None) -> Job:
        paths = await self._paths(job.sources, job.reading)
        process = await BuildProcess.start(
            job,
            paths,
            self._data,
            self._environment,
            self._build_lock,
            staged=staged is not None,
            checkpoint=self._checkpoints.get(job.id),
        )
        self._running = job.id, process
        try:
            if job.id in self._cancelled:
                await process.stop()
            outcome = await process.run(lambda line: self._progress(job.id, line))
        except BaseException:
            await process.stop()
            raise
        job = self.get(job.id)
        if outcome.error is None:
            snapshot = outcome.last.get("snapshot")
            if staged is not None:
                snapshot = await self._pool.run(staged.adopt)
            skips = [self._without_root(skip) for skip in job.skips]
            return replace(job, skips=skips, snapshot=snapshot).ended("succeeded")
        if job.id in self._cancelled:
            return await self._settled(job, "cancelled")
        log.error("the build of job %s failed: %s", job.id, outcome.logged)
        return await self._settled(job, "failed", self._without_root(outcome.error))

    async def _settle_leftover(self) -> None:
        """Settles the job of an earlier service, as soon as its build has ended."""
        while True:
            if await self._pool.run(self._build_lock.is_free):
                break
            await asyncio.sleep(_LEFTOVER_PAUSE_SECONDS)
        await self._settle_interrupted("running")

    async def _settle_interrupted(self, *states: JobState) -> None:
        """Ends the records of jobs in these states, which nobody works on any more."""
        for job in self._store.list():
            if job.state in states:
                await self._record(await self._settled(job, "failed", _INTERRUPTED))

    async def _settled(self, job: Job, state: JobState, error: str | None = None) -> Job:
        """The job, ended in this state, unless what it built is published already."""
        return await self._pool.run(settled, self._data / "collections", job, state, error)

    def _without_root(self, message: str) -> str:
        """A client knows the source by its path below sources/, and has no business with the rest."""
        return message.replace(f"{(self._data / 'sources').resolve()}{os.sep}", "")

    def _progress(self, job_id: str, line: Mapping[str, Any]) -> None:
        known = {name: line[name] for name in _PROGRESS if name in line}
        self._store.keep(replace(self.get(job_id), **known))

    async def _record(self, job: Job) -> None:
        """Saves the end of a job; it has ended even where that cannot be written."""
        self._ended(job.state)
        try:
            await self._save(job)
        except OSError as error:
            log.error("the record of job %s cannot be written: %s", job.id, error)

    async def _save(self, job: Job) -> None:
        async with self._changed:
            dropped = self._store.keep(job)
            self._changed.notify_all()
            await self._pool.run(self._store.write, job, dropped)
