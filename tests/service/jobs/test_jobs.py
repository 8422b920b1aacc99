"""Batch builds: real child processes, their progress, their ends, and what a restart finds."""

import asyncio
import errno
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import psutil
import pytest

from tercet.index.collection import Collection
from tercet.index.documents.datetimes import time_now
from tercet.index.errors import FingerprintMismatchError, InvalidNameError
from tercet.index.files.lock import ExclusiveLock
from tercet.models.encoder import EncoderInfo
from tercet.service.collections.registry import CollectionRegistry
from tercet.service.encoding.shelf import EncoderShelf
from tercet.service.exceptions import InvalidRequestError, NotFoundError, OverloadedError
from tercet.service.jobs import store as job_store
from tercet.service.jobs.manager import JobManager
from tercet.service.jobs.process import IN_JOBS, in_words_of_jobs, reading_flags
from tercet.service.jobs.sources import confined_source
from tercet.service.jobs.store import Job, JobStore
from tercet.service.load.pools import Pool
from tercet.service.schemas.jobs import ReadingRequest


async def until(manager: JobManager, job: Job, condition: Callable[[Job], bool]) -> Job:
    for _ in range(4800):
        if condition(manager.get(job.id)):
            return manager.get(job.id)
        await asyncio.sleep(0.05)
    raise TimeoutError(f"after four minutes: {manager.get(job.id)}")


async def finished(manager: JobManager, job: Job) -> Job:
    return await until(manager, job, lambda job: job.finished)


def children() -> list[psutil.Process]:
    return [child for child in psutil.Process().children() if "tercet.cli.main" in child.cmdline()]


async def test_a_job_builds_and_a_second_one_waits_for_it(manager: JobManager, data: Path) -> None:
    first = await manager.submit("articles", "short.jsonl")
    assert (first.state, first.documents_total, first.error) == ("queued", None, None)
    second = await manager.submit("articles", "short.jsonl")
    done = await finished(manager, first)
    assert (done.state, done.error) == ("succeeded", None)
    assert (done.documents_done, done.documents_total, done.fraction) == (20, 20, 1.0)
    assert done.snapshot == "000001"
    assert done.tokens > 0
    assert done.created_at <= str(done.started_at) <= str(done.finished_at)
    again = await finished(manager, second)
    assert again.snapshot == "000002"
    assert str(done.finished_at) <= str(again.started_at)
    assert Collection.open(data / "collections", "articles").snapshot().documents == 20
    assert [job.id for job in manager.list()] == [second.id, first.id]


@pytest.mark.slow
async def test_a_failed_job_says_why_in_the_clients_words(manager: JobManager, data: Path) -> None:
    done = await finished(manager, await manager.submit("articles", "bad.jsonl"))
    assert done.state == "failed"
    assert done.error is not None
    assert done.error.startswith('bad.jsonl line 2: "text" is missing')
    assert not (data / "collections" / "articles").exists()


@pytest.mark.slow
async def test_the_end_of_each_job_is_told_once(
    data: Path, collections: CollectionRegistry, encoders: EncoderShelf
) -> None:
    """Also of one that an earlier service left, and of one that is cancelled as it waits."""
    told: list[str] = []
    pool = Pool("operations", 2)
    left = Job("left", "x", "short.jsonl", time_now())
    before = JobStore(data / "jobs")
    before.load()
    before.write(left)
    build = ExclusiveLock(data / "jobs" / "build.lock", "held as a build does")
    build.acquire()  # so that no job begins yet
    manager = JobManager(data, collections, encoders, {"TERCET_CHECKPOINT": "nowhere"}, pool, told.append)
    await manager.start()
    try:
        assert told == ["failed"]
        failing = await manager.submit("x", "short.jsonl")
        waiting = await manager.submit("x", "short.jsonl")
        await manager.cancel(waiting.id)
        assert told == ["failed", "cancelled"]
        build.release()
        await finished(manager, failing)
        assert told == ["failed", "cancelled", "failed"]
    finally:
        await manager.stop()
        pool.close()
    assert len(told) == 3


@pytest.mark.slow
async def test_bad_records_are_skipped_where_asked_for(manager: JobManager, data: Path) -> None:
    done = await finished(manager, await manager.submit("articles", "bad.jsonl", on_error="skip"))
    assert (done.state, done.documents_done, done.skipped) == ("succeeded", 1, 1)
    assert list(done.skips) == ['bad.jsonl line 2: "text" is missing']
    assert done.truncated == 0


@pytest.mark.slow
async def test_a_job_reads_the_columns_that_are_named(manager: JobManager, data: Path) -> None:
    content = "words;-head;n;x\nheißes Wasser;Tee;1;2\nder Zug;;3;4\n".encode("cp1252")
    (data / "sources" / "table.csv").write_bytes(content)
    reading = {
        "text_field": "words", "title_field": "-head", "generate_ids": True, "metadata_fields": ["n"],
        "encoding": "cp1252", "delimiter": ";",
    }  # fmt: skip
    job = await manager.submit("table", "table.csv", reading=reading)
    assert (await finished(manager, job)).state == "succeeded", manager.get(job.id).error
    found = Collection.open(data / "collections", "table").snapshot().page(None, 10)
    assert sorted((one.text, one.title, one.metadata["n"]) for one in found) == [
        ("der Zug", None, "3"),
        ("heißes Wasser", "Tee", "1"),
    ]
    (data / "sources" / "bare.csv").write_text("1,tea\n")
    bare = await finished(
        manager, await manager.submit("bare", "bare.csv", reading={"columns": ["id", "text"]})
    )
    assert (bare.state, bare.documents_done) == ("succeeded", 1), bare.error
    (data / "sources" / "dump").write_text('{"data": [{"id": "a", "text": "tea"}], "other": [{}]}')
    said = await finished(
        manager, await manager.submit("said", "dump", reading={"format": "json", "records": "data"})
    )
    assert (said.state, said.documents_done) == ("succeeded", 1), said.error
    failed = await finished(manager, await manager.submit("other", "table.csv"))
    assert failed.state == "failed"
    assert "table.csv: none of text, contents" in str(failed.error)
    assert "reading.text_field" in str(failed.error)
    assert "--" not in str(failed.error)


def test_every_way_of_reading_has_its_flag() -> None:
    flags = {in_words_of_jobs(flag): flag for flag in IN_JOBS}
    for name in ReadingRequest.model_fields:
        flag = flags[f"reading.{name}"]
        given = {name: ["x"] if name.endswith("_fields") and name != "infer_fields" else "x"}
        assert reading_flags(given) == [f"{flag}=x"]


@pytest.mark.slow
async def test_a_job_reads_a_folder_of_texts_in_passages(manager: JobManager, data: Path) -> None:
    folder = data / "sources" / "docs"
    (folder / "guide").mkdir(parents=True)
    (folder / "guide" / "tea.md").write_text("# Tea\n\nHot.\n\n## Water\n\n" + "Boil the water. " * 30)
    (data / "secret.md").write_text("secret")
    (folder / "secret.md").symlink_to(data / "secret.md")
    reading = {"split": "markdown", "split_size": 64}
    done = await finished(manager, await manager.submit("docs", "docs", reading=reading))
    assert done.state == "succeeded", done.error
    collection = Collection.open(data / "collections", "docs")
    ids = [one.id for one in collection.snapshot().page(None, 10)]
    assert ids[:2] == ["guide/tea.md#tea", "guide/tea.md#water"]
    assert len(ids) > 2
    (folder / "guide" / "tea.md").write_text("# Tea\n\nHot.\n")
    shorter = await finished(manager, await manager.submit("docs", "docs", reading=reading, mode="upsert"))
    assert shorter.state == "succeeded", shorter.error
    assert [one.id for one in collection.snapshot().page(None, 10)] == ["guide/tea.md#tea"]
    assert collection.settings.fields == {"source": "keyword"}
    assert list(done.skips) == ["docs file secret.md: left out: a symbolic link out of the folder"]


@pytest.mark.slow
async def test_a_job_reads_several_sources_and_finds_their_fields(manager: JobManager, data: Path) -> None:
    folder = data / "sources" / "more" / "year=2024"
    folder.mkdir(parents=True)
    (folder / "x.csv").write_text("id,text,at\n1,tea,2024-05-17 09:30:00\n")
    sources = ["more", "short.jsonl"]
    job = await manager.submit("several", sources, reading={"infer_fields": True})
    done = await finished(manager, job)
    assert done.state == "succeeded", done.error
    assert (done.source, done.documents_done) == (sources, 21)
    collection = Collection.open(data / "collections", "several")
    assert collection.settings.fields == {"year": "integer", "at": "datetime"}
    with pytest.raises(InvalidRequestError, match="source 'gone' does not exist; give a path below sources/"):
        await manager.submit("several", ["more", "gone"])
    (folder / "y.jsonl").touch()
    with pytest.raises(InvalidRequestError, match=r"'more' cannot be read \(more: the folder holds y\.jsonl"):
        await manager.submit("several", "more")


async def test_a_job_without_a_record_has_failed(
    manager: JobManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(JobStore, "write", full)
    with pytest.raises(OSError, match="No space left"):
        await manager.submit("articles", "short.jsonl")
    (job,) = manager.list()
    assert job.state == "failed"
    assert job.error == "its record cannot be written: No space left on device"
    assert (await manager.cancel(job.id)).state == "failed"


@pytest.mark.slow
async def test_cancelling_keeps_the_former_snapshot(manager: JobManager, data: Path) -> None:
    await finished(manager, await manager.submit("articles", "short.jsonl"))
    running = await manager.submit("articles", "long.jsonl")
    waiting = await manager.submit("articles", "short.jsonl")
    now_running = await until(manager, running, lambda job: job.tokens > 0)
    assert now_running.state == "running"
    assert now_running.documents_total == 20_000
    (child,) = children()
    assert child.nice() == 10
    assert (await manager.cancel(waiting.id)).state == "cancelled"
    cancelled = await manager.cancel(running.id)
    assert (cancelled.state, cancelled.error, cancelled.snapshot) == ("cancelled", None, None)
    assert not child.is_running()
    assert (await manager.cancel(running.id)).state == "cancelled"  # once more changes nothing
    assert Collection.open(data / "collections", "articles").current() == "000001"
    with pytest.raises(NotFoundError):
        await manager.cancel("nothing")


@pytest.mark.slow
async def test_no_message_of_a_job_tells_a_path_of_the_machine(
    manager: JobManager, data: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The log has them."""
    (data / "sources" / "cut.parquet").write_bytes(b"PAR1 no parquet PAR1")
    parquet = await finished(manager, await manager.submit("articles", "cut.parquet"))
    assert str(parquet.error).startswith("cut.parquet: not a readable Parquet file")
    assert (await finished(manager, await manager.submit("articles", "short.jsonl"))).state == "succeeded"
    segments = data / "collections" / "articles" / "segments"
    for folder in segments.iterdir():
        shutil.rmtree(folder)
    segments.rmdir()
    segments.write_text("no folder")
    storage = await finished(manager, await manager.submit("articles", "short.jsonl"))
    assert str(storage.error).startswith("the server's storage failed: ")
    assert all(str(data) not in f"{job.error}{job.skips}" for job in manager.list())
    assert str(segments) in caplog.text


@pytest.mark.slow
async def test_what_is_refused(
    manager: JobManager, data: Path, info: EncoderInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(FingerprintMismatchError, match=info.fingerprint):
        await manager.submit("articles", "short.jsonl", "another encoder")
    with pytest.raises(InvalidNameError):
        await manager.submit("../articles", "short.jsonl")
    with pytest.raises(InvalidRequestError) as caught:
        await manager.submit("articles", "../short.jsonl")
    assert caught.value.param == "source"
    with pytest.raises(InvalidRequestError, match="takes a server with a Ray cluster") as caught:
        await manager.submit("articles", "short.jsonl", engine="ray")
    assert (caught.value.param, caught.value.code) == ("engine", "unsupported")
    assert manager.list() == []
    accepted = await manager.submit("articles", "short.jsonl", info.fingerprint)
    await finished(manager, accepted)
    settings = data / "collections" / "articles" / "collection.json"
    settings.write_text(settings.read_text().replace(info.fingerprint, "0" * len(info.fingerprint)))
    with pytest.raises(FingerprintMismatchError, match="was built with encoder"):
        await manager.submit("articles", "short.jsonl")
    monkeypatch.setattr("tercet.service.jobs.manager.MAX_QUEUED", 0)
    with pytest.raises(OverloadedError):
        await manager.submit("others", "short.jsonl")


@pytest.mark.parametrize(
    "source",
    [
        *("", ".", "..", "../x.jsonl", "a/../../x.jsonl", "/etc/passwd", "x\0.jsonl", "x" * 5000),
        *("missing.jsonl", "out.jsonl", "out/x.jsonl", "beir", "notes.docx", "loop.jsonl", "\ud800.jsonl"),
    ],
)
def test_sources_stay_below_their_folder(tmp_path: Path, source: str) -> None:
    root = tmp_path / "sources"
    (root / "beir").mkdir(parents=True)
    (tmp_path / "x.jsonl").touch()
    (root / "notes.docx").touch()
    (root / "out.jsonl").symlink_to(tmp_path / "x.jsonl")
    (root / "out").symlink_to(tmp_path)
    (root / "loop.jsonl").symlink_to(root / "loop.jsonl")
    (root / "beir" / "corpus.jsonl").symlink_to(tmp_path / "x.jsonl")
    with pytest.raises(InvalidRequestError):
        confined_source(root, source)


def test_good_sources(tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "corpus.jsonl").touch()
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "set" / "corpus.jsonl")
    assert confined_source(tmp_path, "set") == tmp_path / "set"
    assert confined_source(tmp_path, "./set/corpus.jsonl") == tmp_path / "set" / "corpus.jsonl"
    assert confined_source(tmp_path, "link.jsonl") == tmp_path / "set" / "corpus.jsonl"


def test_records_are_bounded_and_damaged_ones_are_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_store, "KEPT_JOBS", 3)
    store = JobStore(tmp_path)
    store.load()
    running = Job("running", "c", "s", time_now(), "running")
    jobs = [
        running,
        *(replace(running, id=f"j{i}", created_at=time_now()).ended("succeeded") for i in range(5)),
    ]
    for job in jobs:
        store.write(job, store.keep(job))
    assert sorted(path.stem for path in tmp_path.iterdir()) == ["j3", "j4", "running"]
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "older.json").write_text('{"identifier": 1}')
    again = JobStore(tmp_path)
    again.load()
    assert {job.id for job in again.list()} == {"j3", "j4", "running"}
    assert (tmp_path / "broken.json").exists()


def test_the_json_of_a_job_is_that_of_its_fields() -> None:
    job = Job("id", "docs", "a.jsonl", time_now(), skips=['line 1: a "quote"', "줄 2"], truncated=3)
    assert json.loads(job.to_json()) == asdict(job)
    assert list(json.loads(job.to_json())) == list(asdict(job))
