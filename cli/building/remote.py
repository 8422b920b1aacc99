"""Builds by a server, which `tercet collection build --url` asks for and watches."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tercet.cli import options
from tercet.cli.output import console, print_pairs
from tercet.cli.stores.remote import Remote, RemoteError, path_of

if TYPE_CHECKING:
    from tercet.ingest.progress import BuildProgress
    from tercet.service.settings.settings import Settings

POLL_SECONDS = 0.5


def build_remote(
    url: str, settings: Settings, collection: str, request: dict[str, Any], progress: options.ProgressKind
) -> None:
    """Has a server build, and shows how far it is. An interrupted command cancels the job.

    Raises RemoteError where the job fails.
    """
    from tercet.cli.progress import build_progress

    with Remote(url, settings) as remote, build_progress(progress) as report:
        try:
            job = remote.ask("POST", path_of(collection, "jobs"), json=request)
        except RemoteError as error:
            raise _with_here(error, request["source"]) from error
        path, began = f"/jobs/{job['id']}", time.monotonic()
        try:
            while job["finished_at"] is None:
                time.sleep(POLL_SECONDS)
                job = remote.ask("GET", path)
                if job["phase"] is not None:
                    report(_progress_of(job, time.monotonic() - began))
        except KeyboardInterrupt:
            remote.ask("DELETE", path)
            raise
    if job["state"] != "succeeded":
        raise RemoteError(f"the job {job['state']}: {job['error'] or 'somebody cancelled it'}")
    pairs = {
        "collection": f"{collection}, snapshot {job['snapshot']}",
        "documents": job["documents_done"],
        "tokens": job["tokens"],
        "skipped": job["skipped"],
    }
    print_pairs(pairs, console())


def _progress_of(job: dict[str, Any], seconds: float) -> BuildProgress:
    from tercet.ingest.progress import BuildProgress

    return BuildProgress(
        job["phase"],
        job["fraction"],
        job["documents_done"],
        job["documents_total"],
        job["tokens"],
        job["skipped"],
        seconds,
    )


def _with_here(error: RemoteError, source: str | list[str]) -> RemoteError:
    """The error, and what to do about a source that is not the server's but of this machine."""
    sources = [source] if isinstance(source, str) else source
    here = [path for path in sources if Path(path).exists()]
    if not here or not str(error).startswith("source "):
        return error
    return RemoteError(
        f"{error}; {here[0]} is on this machine: copy it there, or send it with "
        f"tercet documents put {here[0]} --collection NAME --url URL"
    )
