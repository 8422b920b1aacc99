"""Batch index builds: start, watch, cancel."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Annotated

import orjson
from fastapi import Path, Response

from tercet.service.collections.readable import NamedAliases
from tercet.service.exceptions import InvalidRequestError
from tercet.service.jobs.manager import no_job
from tercet.service.jobs.store import Job
from tercet.service.keys.access import Access
from tercet.service.routes.collections import Name
from tercet.service.routes.common import ADMIN, Allowed, Services, errors, router
from tercet.service.routes.pages import ListPage, Paged
from tercet.service.runtime import Runtime
from tercet.service.schemas.jobs import JobList, JobRequest, JobResponse

JobId = Annotated[str, Path(description="A job's id.")]

routes = router("jobs")


@routes.post(
    "/collections/{name}/jobs",
    status_code=202,
    response_model=JobResponse,
    responses=errors(404, 409, 422, 507),
    dependencies=ADMIN,
)
async def submit_job(name: Name, body: JobRequest, services: Services) -> Response:
    """Build a collection from a source below the data root; searches see the old documents until it is done.

    A collection that does not exist is created. Documents may be written and deleted meanwhile, and stay so.
    """
    services.served.require_builds()
    reading = (
        {} if body.reading is None else body.reading.model_dump(exclude_none=True, exclude_defaults=True)
    )
    job = await services.jobs.submit(
        name,
        body.source,
        body.model,
        body.on_error or "stop",
        body.adapter,
        body.mode or "replace",
        reading,
        body.engine or "local",
    )
    return _response(job.to_json(), 202)


@routes.get("/jobs", response_model=JobList)
async def list_jobs(services: Services, access: Allowed, page: Paged) -> Response:
    """Jobs of collections that the key may use, the newest first."""
    jobs, aliases = services.jobs.list(), services.collections.aliases
    return _response(await services.pools.operations.run(_listed, jobs, aliases, access, page))


@routes.get("/jobs/{job_id}", response_model=JobResponse, responses=errors(404, 422))
async def get_job(job_id: JobId, services: Services, access: Allowed) -> Response:
    """A job's progress and outcome."""
    return _response((await _seen(services, access, job_id)).to_json())


@routes.delete(
    "/jobs/{job_id}",
    response_model=JobResponse,
    responses=errors(404, 422, 507),
    dependencies=ADMIN,
)
async def cancel_job(job_id: JobId, services: Services, access: Allowed) -> Response:
    """Cancel a queued or running job and return it; a finished one stays as it is."""
    access.require_name((await _seen(services, access, job_id)).collection)
    return _response((await services.jobs.cancel(job_id)).to_json())


async def _seen(services: Runtime, access: Access, job_id: str) -> Job:
    """Raises NotFoundError, also for a job of a collection that the key may not use."""
    job = services.jobs.get(job_id)
    seen = await services.pools.operations.run(_visible, [job], services.collections.aliases, access)
    if not seen:
        raise no_job(job_id)
    return job


def _visible(jobs: Sequence[Job], aliases: NamedAliases, access: Access) -> Sequence[Job]:
    """The jobs of collections that the key may use, by their own name or by an alias of now."""
    if access.collections is None:
        return jobs
    meant = {name for alias, names in aliases.all().items() if access.sees(alias) for name in names}
    return [job for job in jobs if job.collection in meant or access.sees(job.collection)]


def _listed(jobs: Sequence[Job], aliases: NamedAliases, access: Access, page: ListPage) -> bytes:
    """Raises InvalidRequestError where the page is to follow a job that is not kept."""
    visible = _visible(jobs, aliases, access)
    if page.after is not None:
        indices = {job.id: index for index, job in enumerate(visible)}
        if page.after not in indices:
            raise InvalidRequestError(
                "after is no job of this list, or one that is kept no more: begin again without it", "after"
            )
        visible = visible[indices[page.after] + 1 :]
    shown, more = page.of(visible, attrgetter("id"))
    end = b",%b" % orjson.dumps(more)[1:] if more else b"}"
    return b'{"jobs":[%b]%b' % (b",".join(job.to_json() for job in shown), end)


def _response(content: bytes, status: int = 200) -> Response:
    return Response(content, status, media_type="application/json")
