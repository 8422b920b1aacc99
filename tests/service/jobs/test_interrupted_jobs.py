"""Jobs whose child or service is killed, stopped or started again, and writes beside them."""

import asyncio
import json
import signal
import sys
from pathlib import Path

import psutil
import pytest

from tercet.index.candidates import Document
from tercet.index.collection import Collection
from tercet.index.documents.datetimes import time_now
from tercet.index.errors import CollectionNotFoundError
from tercet.index.files.lock import ExclusiveLock
from tercet.ingest.target import open_or_create
from tercet.models.encoder import EncoderInfo, encode
from tercet.models.loader import load_encoder
from tercet.service.collections.registry import CollectionRegistry
from tercet.service.jobs.manager import JobManager
from tercet.service.jobs.staging import StagedBuild
from tercet.service.jobs.store import Job, JobStore
from tests.service.jobs.conftest import MakeManager
from tests.service.jobs.test_jobs import children, finished, until


@pytest.mark.slow
async def test_a_killed_child_fails_its_job_only(manager: JobManager, data: Path) -> None:
    await finished(manager, await manager.submit("articles", "short.jsonl"))
    job = await manager.submit("articles", "long.jsonl")
    await until(manager, job, lambda job: job.tokens > 0)
    children()[0].kill()
    done = await finished(manager, job)
    assert done.state == "failed"
    assert done.error == "the build was killed from outside, perhaps for want of memory"
    assert (await finished(manager, await manager.submit("articles", "short.jsonl"))).state == "succeeded"


@pytest.mark.slow
async def test_stopping_and_restarting(make: MakeManager, manager: JobManager) -> None:
    done = await finished(manager, await manager.submit("articles", "short.jsonl"))
    running = await manager.submit("articles", "long.jsonl")
    await until(manager, running, lambda job: time_now() > job.created_at)  # by which records are in order
    waiting = await manager.submit("articles", "short.jsonl")
    await until(manager, running, lambda job: job.tokens > 0)
    await manager.stop()
    assert children() == []
    restarted = make()
    await restarted.start()
    assert [job.id for job in restarted.list()] == [waiting.id, running.id, done.id]
    assert restarted.get(done.id) == done
    for job in (running, waiting):
        assert restarted.get(job.id).state == "failed"
        assert "interrupted by a restart" in str(restarted.get(job.id).error)


SERVICE = """
import asyncio, time
from pathlib import Path
from tercet.models.loader import load_encoder
from tercet.service.collections.registry import CollectionRegistry
from tercet.service.encoding.service import LocalEncoding
from tercet.service.encoding.shelf import EncoderShelf
from tercet.service.jobs.manager import JobManager
from tercet.service.load.pools import Pool
{patch}
async def run():
    encoder = load_encoder({checkpoint!r}, threads=1)
    encoders = EncoderShelf(LocalEncoding(encoder, batch_tokens=512, queue_tokens=4096))
    environment = {{"TERCET_CHECKPOINT": {checkpoint!r}}}
    collections = CollectionRegistry(Path({data!r}) / "collections")
    manager = JobManager(Path({data!r}), collections, encoders, environment, Pool("files", 1))
    await manager.start()
    for source in {sources!r}:
        job = await manager.submit("articles", source)
        while manager.get(job.id).tokens == 0:
            await asyncio.sleep(0.05)
    if source == "long.jsonl":
        print(job.id, flush=True)
    await asyncio.sleep(600)

asyncio.run(run())
"""


@pytest.mark.slow
async def test_a_killed_service_takes_its_build_along(
    make: MakeManager, data: Path, embedded_checkpoint: Path, repository: Path
) -> None:
    """A service of its own is killed in its second build; the next one finds the job and no process."""
    code = SERVICE.format(
        checkpoint=str(embedded_checkpoint), data=str(data), sources=["short.jsonl", "long.jsonl"], patch=""
    )
    service = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, cwd=repository, stdout=asyncio.subprocess.PIPE
    )
    assert service.stdout is not None
    job_id = (await service.stdout.readline()).decode().strip()
    (child,) = [
        each for each in psutil.Process(service.pid).children() if "tercet.cli.main" in each.cmdline()
    ]
    service.send_signal(signal.SIGKILL)
    await service.wait()
    await asyncio.to_thread(child.wait, 120)
    manager = make()
    await manager.start()
    job = await finished(manager, manager.get(job_id))
    assert (job.state, job.snapshot) == ("failed", None)
    assert "interrupted by a restart" in str(job.error)
    assert Collection.open(data / "collections", "articles").current() == "000001"


@pytest.mark.slow
async def test_a_service_killed_after_its_build_published_says_so_when_it_is_back(
    make: MakeManager, data: Path, embedded_checkpoint: Path, repository: Path
) -> None:
    """The service is killed with SIGKILL between the publication and its record."""
    code = SERVICE.format(
        checkpoint=str(embedded_checkpoint),
        data=str(data),
        sources=["short.jsonl"],
        patch="""
from tercet.service.jobs.store import JobStore
write = JobStore.write

def write_until_the_end(self, job, dropped=()):
    if job.finished:
        print(job.id, flush=True)
        time.sleep(600)
    write(self, job, dropped)

JobStore.write = write_until_the_end
""",
    )
    service = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, cwd=repository, stdout=asyncio.subprocess.PIPE
    )
    assert service.stdout is not None
    job_id = (await service.stdout.readline()).decode().strip()
    service.send_signal(signal.SIGKILL)
    await service.wait()
    assert json.loads((data / "jobs" / f"{job_id}.json").read_text())["state"] == "running"
    manager = make()
    await manager.start()
    job = await finished(manager, manager.get(job_id))
    assert (job.state, job.error, job.snapshot) == ("succeeded", None, "000001")
    assert (job.documents_done, job.documents_total, job.fraction) == (20, 20, 1.0)
    assert job.tokens > 0
    later = await finished(manager, await manager.submit("articles", "bad.jsonl"))
    assert (later.state, later.snapshot) == ("failed", None)  # what is published is of the job before


@pytest.mark.slow
async def test_a_build_that_outlives_its_service_is_waited_for(
    make: MakeManager, data: Path, info: EncoderInfo
) -> None:
    store = JobStore(data / "jobs")
    store.load()
    left = Job("ab" * 16, "articles", "short.jsonl", time_now(), "running", started_at=time_now())
    store.write(left)
    build = ExclusiveLock(data / "jobs" / "build.lock", "held as the build does")
    build.acquire()
    manager = make()
    await manager.start()
    later = await manager.submit("others", "short.jsonl")
    await asyncio.sleep(1)
    assert (manager.get(left.id).state, manager.get(later.id).state) == ("running", "queued")
    collection, _ = open_or_create(data / "collections", "articles", info, {})
    with collection.writer(mark=left.id) as writer:
        encoder = load_encoder("minilm-m3", threads=1)
        writer.add([Document("a", "tea")], encode(encoder, ["tea"]))
        writer.publish()
    build.release()
    assert (await finished(manager, left)).state == "succeeded"
    assert (await finished(manager, later)).state == "succeeded"


@pytest.mark.slow
async def test_writes_beside_a_job_survive_it(
    manager: JobManager,
    collections: CollectionRegistry,
    data: Path,
    embedded_checkpoint: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    encoder = load_encoder(str(embedded_checkpoint), threads=1)

    def put(*ids: str) -> None:
        with collections.writing("articles") as live:
            live.put(
                [Document(id, f"live {id}") for id in ids], encode(encoder, [f"live {id}" for id in ids])
            )

    await finished(manager, await manager.submit("articles", "short.jsonl"))
    put("d1", "before")
    adopt = StagedBuild.adopt

    def adopted_after_writes(staged: StagedBuild) -> str:
        put("d2", "during")
        with collections.writing("articles") as live:
            live.delete(["d3"])
        return adopt(staged)

    with monkeypatch.context() as patch:
        patch.setattr(StagedBuild, "adopt", adopted_after_writes)
        job = await finished(manager, await manager.submit("articles", "short.jsonl"))
    assert (job.state, job.documents_done) == ("succeeded", 20)
    snapshot = collections.snapshot("articles")
    assert job.snapshot is not None
    found = {document.id: document.text for document in snapshot.page(None, 100)}
    expected = {f"d{i}": f"tea and water {i}" for i in range(20) if i != 3}
    assert found == {**expected, "d2": "live d2", "during": "live during"}
    assert not list((data / "collections" / "articles" / "builds").iterdir())

    (data / "sources" / "more.jsonl").write_text('{"id": "d4", "text": "more"}\n{"id": "e", "text": "x"}')
    commands: list[tuple[str, ...]] = []
    real = asyncio.create_subprocess_exec

    async def noted(*command: str, **options: object) -> object:
        commands.append(command)
        return await real(*command, **options)  # type: ignore[arg-type]

    monkeypatch.setattr("tercet.service.jobs.process.asyncio.create_subprocess_exec", noted)
    job = await finished(manager, await manager.submit("articles", "more.jsonl", mode="upsert"))
    assert (job.state, job.documents_done) == ("succeeded", 2)
    (command,) = commands  # what it does not replace counts for its dense kind
    assert command[command.index("--mode") + 1] == "upsert"
    found |= {"d4": "more", "e": "x"}
    snapshot = collections.snapshot("articles")
    assert {document.id: document.text for document in snapshot.page(None, 100)} == found


@pytest.mark.slow
async def test_a_collection_that_is_made_anew_during_a_build_is_not_its_own(
    manager: JobManager, collections: CollectionRegistry
) -> None:
    job = await finished(manager, await manager.submit("articles", "short.jsonl"))
    staged = StagedBuild(collections, job)
    settings = collections.snapshot("articles").settings
    collections.delete("articles")
    collections.create("articles", settings)
    with pytest.raises(CollectionNotFoundError, match="deleted or created anew during the build"):
        staged.adopt()
    staged.close()
    assert collections.snapshot("articles").documents == 0
    collections.delete("articles")
    assert StagedBuild.of(collections, job) is None
