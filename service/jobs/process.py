"""One build in a process of its own: its command, its progress lines, its end."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tercet.index.errors import CollectionBusyError, CollectionNotFoundError
from tercet.index.files.lock import ExclusiveLock
from tercet.ingest.child import module_command
from tercet.service.jobs.store import Job

NICENESS = 10
NO_REVISION = {"TERCET_REVISION": "", "TERCET_HEADS": ""}  # what the checkpoint's name says
STOP_SECONDS = 10.0
_ERROR_TAIL_BYTES = 4096
_LINE_BYTES = 2**20


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a build ended.

    `error` is one line for clients where it failed, and `logged` the full reason; `last` is its last line of
    progress.
    """

    error: str | None
    logged: str
    last: Mapping[str, Any]


class BuildLock:
    """Held by a running build alone, so that whoever can take it knows that none runs any more.

    That a build's service is gone does not tell: the build notices that itself, and may be publishing.
    """

    def __init__(self, folder: Path) -> None:
        self._lock = ExclusiveLock(folder / "build.lock", "the lock of builds")

    def is_free(self) -> bool:
        """Whether no build runs."""
        try:
            self._lock.acquire()
        except CollectionBusyError:
            return False
        except (CollectionNotFoundError, OSError):
            return True  # the folder is gone, and no build can go on without
        self._lock.release()
        return True

    @contextmanager
    def for_child(self) -> Iterator[int]:
        """Takes the lock; the descriptor given is for a child to inherit, which then holds it alone."""
        self._lock.acquire()
        try:
            yield self._lock.fileno()
        finally:
            self._lock.release()


class BuildProcess:
    """A child running `tercet collection build`, with less claim to the processor than the service.

    A child isolates searches from a build's memory and crashes. It holds one end of a pipe as its
    standard input, so it notices when the service is gone, however that ended, and stops.
    """

    def __init__(self, process: Process, stdout: asyncio.StreamReader, stderr: asyncio.StreamReader) -> None:
        self._process = process
        self._stdout = stdout
        self._stderr = stderr

    @classmethod
    async def start(
        cls,
        job: Job,
        sources: Sequence[Path],
        data: Path,
        environment: Mapping[str, str],
        lock: BuildLock,
        *,
        staged: bool,
        checkpoint: str | None = None,
    ) -> BuildProcess:
        """Starts the build of a job, beside its collection where `staged`.

        checkpoint: in the place of the environment's, whose revision is not this one's.

        Raises OSError where no process can be started.
        """
        with lock.for_child() as descriptor:
            process = await asyncio.create_subprocess_exec(
                *(*module_command("tercet.cli.main"), "collection", "build", *map(str, sources)),
                *("--collection", job.collection, "--data", str(data), "--on-error", job.on_error),
                *reading_flags(job.reading),
                *(() if job.adapter is None else ("--adapter", job.adapter)),
                *(() if checkpoint is None else ("--checkpoint", checkpoint)),
                *(("--staged", "--mode", job.mode) if staged else ()),
                *(("--ray",) if job.engine == "ray" else ()),
                *("--progress", "json", "--stop-with-stdin", "--mark", job.id),
                stdin=PIPE,
                stdout=PIPE,
                stderr=PIPE,
                env={**os.environ, **environment, **({} if checkpoint is None else NO_REVISION)},
                limit=_LINE_BYTES,
                pass_fds=[descriptor],
            )
        with contextlib.suppress(ProcessLookupError):
            os.setpriority(os.PRIO_PROCESS, process.pid, NICENESS)
        if process.stdout is None or process.stderr is None:
            raise OSError("the build started without pipes")
        return cls(process, process.stdout, process.stderr)

    async def run(self, progress: Callable[[Mapping[str, Any]], None]) -> Outcome:
        """Waits for the end, passing on each line of progress."""
        last, tail, returncode = await asyncio.gather(
            self._read_progress(progress), self._read_error(), self._process.wait()
        )
        reported = last.get("error")
        error = None
        if returncode != 0:
            error = in_words_of_jobs(reported) if reported else _abrupt_end(returncode)
        return Outcome(error, tail or f"exit code {returncode}", last)

    async def stop(self) -> None:
        """Asks the build to end, and makes it end if it does not."""
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()
        try:
            await asyncio.wait_for(self._process.wait(), STOP_SECONDS)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()

    async def _read_progress(self, progress: Callable[[Mapping[str, Any]], None]) -> Mapping[str, Any]:
        last: Mapping[str, Any] = {}
        async for line in self._stdout:
            try:
                value = json.loads(line)
            except ValueError:
                continue  # a library wrote to standard output
            if isinstance(value, dict):
                last = value
                progress(last)
        return last

    async def _read_error(self) -> str:
        """The end of standard error."""
        tail = b""
        while block := await self._stderr.read(_ERROR_TAIL_BYTES):
            tail = (tail + block)[-_ERROR_TAIL_BYTES:]
        return tail.decode("utf-8", "replace").strip().removeprefix("Error: ")


def _abrupt_end(returncode: int) -> str:
    if returncode == -signal.SIGKILL:
        return "the build was killed from outside, perhaps for want of memory"
    return f"the build ended with exit code {returncode}; the server's log has the details"


# Flag of `tercet collection build` → what a job calls it.
IN_JOBS: Mapping[str, str] = {
    "--text-field": "reading.text_field",
    "--title-field": "reading.title_field",
    "--id-field": "reading.id_field",
    "--partition-field": "reading.partition_field",
    "--metadata-field": "reading.metadata_fields",
    "--no-metadata-field": "reading.no_metadata_fields",
    "--generate-ids": "reading.generate_ids",
    "--infer-fields": "reading.infer_fields",
    "--columns": "reading.columns",
    "--encoding": "reading.encoding",
    "--delimiter": "reading.delimiter",
    "--format": "reading.format",
    "--records": "reading.records",
    "--split": "reading.split",
    "--split-size": "reading.split_size",
    "--on-error": "on_error",
    "--adapter": "adapter",
}
_FLAG = re.compile(r"(?<![\w-])--[a-z-]+[a-z]")


def in_words_of_jobs(error: str) -> str:
    """What a build says of its flags, of the fields that they come from."""
    return _FLAG.sub(lambda flag: IN_JOBS.get(flag[0], flag[0]), error)


def reading_flags(reading: Mapping[str, Any]) -> list[str]:
    """How a source is read, as flags of `tercet collection build`."""
    flags = []
    for name, given in reading.items():
        value = ",".join(given) if name == "columns" else given
        flag = f"--{name.removesuffix('s') if isinstance(value, list) else name}".replace("_", "-")
        values = value if isinstance(value, list) else [value]
        flags += [flag if element is True else f"{flag}={element}" for element in values]
    return flags
