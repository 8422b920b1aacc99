"""Batch index builds: start, watch, cancel."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from fastapi import Path, Response

from service.jobs.store import Job
from service.routes.collections import Name
from service.routes.common import WRITE, Services, errors, router
from service.schemas.jobs import JobList, JobRequest, JobResponse

JobId = Annotated[str, Path(description="A job's id.")]

routes = router("jobs")


@routes.post(
    "/collections/{name}/jobs",
    status_code=202,
    response_model=JobResponse,
    responses=errors(404, 409, 422, 507),
    dependencies=WRITE,
)
async def submit_job(name: Name, body: JobRequest, services: Services) -> Response:
    """Build a collection from a source below the data root; searches see the old documents until it is done.

    A collection that does not exist is created. Documents may be written and deleted meanwhile, and stay so.
    """
    reading = (
        {} if body.reading is None else body.reading.model_dump(exclude_none=True, exclude_defaults=True)
    )
    job = await services.jobs.submit(
        name,
        body.source,
        body.encoder,
        body.on_error or "stop",
        body.adapter,
        body.mode or "replace",
        reading,
    )
    return _response(job.to_json(), 202)


@routes.get("/jobs", response_model=JobList)
async def list_jobs(services: Services) -> Response:
    """All jobs, the newest first."""
    return _response(await services.pools.operations.run(_listed, services.jobs.list()))


@routes.get("/jobs/{job_id}", response_model=JobResponse, responses=errors(404, 422))
async def get_job(job_id: JobId, services: Services) -> Response:
    """A job's progress and outcome."""
    return _response(services.jobs.get(job_id).to_json())


@routes.delete(
    "/jobs/{job_id}",
    response_model=JobResponse,
    responses=errors(404, 422, 507),
    dependencies=WRITE,
)
async def cancel_job(job_id: JobId, services: Services) -> Response:
    """Cancel a queued or running job and return it; a finished one stays as it is."""
    return _response((await services.jobs.cancel(job_id)).to_json())


def _listed(jobs: Iterable[Job]) -> bytes:
    return b'{"jobs":[%b]}' % b",".join(job.to_json() for job in jobs)


def _response(content: bytes, status: int = 200) -> Response:
    return Response(content, status, media_type="application/json")
