"""Builds on Ray: equal to those of one process, whatever dies; errors as of a build here."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tercet.cluster.building import blocks
from tercet.cluster.building.build import build_shards
from tercet.cluster.building.settings import ShardedBuild
from tercet.cluster.objects.opening import open_store
from tercet.cluster.ray.errors import RayFailedError
from tercet.cluster.ray.executor import ActorPool, FittedPool, RayExecutor
from tercet.cluster.ray.session import prepare
from tercet.cluster.snapshots.collecting import collect
from tercet.cluster.work.executor import Executor, ThisProcess, Work, Worker
from tercet.index.collection import Collection
from tercet.index.errors import FingerprintMismatchError
from tercet.index.verify import verify
from tercet.ingest.document_encoders import DocumentEncoder, LocalDocuments
from tercet.models.loader import load_encoder
from tercet.service.collections.registry import CollectionRegistry
from tercet.service.encoding.service import LocalEncoding
from tercet.service.encoding.shelf import EncoderShelf
from tercet.service.jobs.manager import JobManager
from tercet.service.load.pools import Pool
from tests.endurance.cluster import dying

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore"),  # of Ray itself, about its own settings and processes
]


@pytest.fixture(scope="module")
def executor(ray_alone: None) -> Iterator[RayExecutor]:
    """Two workers of this machine, which take what this module defines by value."""
    if find_spec("ray") is None:
        pytest.skip("Ray is not installed (pip install '.[ray]')")
    prepare(None)
    import ray.cloudpickle

    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    ray.cloudpickle.register_pickle_by_value(dying)
    ray.cloudpickle.register_pickle_by_value(sys.modules["tests.conftest"])
    found = RayExecutor(None, ActorPool(workers=2, cpus=1), cpus=2)
    yield found
    found.close()


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks.blocks_of, "__defaults__", (16, 2**20))


def built(
    url: str,
    source: Path,
    encoder: Any,
    executor: Executor,
    opener: Callable[[], DocumentEncoder] | None = None,
) -> Any:
    documents = LocalDocuments(encoder)
    asked = ShardedBuild("articles", source, 2)
    return build_shards(asked, documents, opener or partial(LocalDocuments, encoder), url, executor)


@pytest.mark.slow
def test_whatever_dies_every_document_is_there_once(
    tmp_path: Path, tiny: Any, write_source: Any, pull_shards: Any, stored: Any, executor: RayExecutor
) -> None:
    source, died = write_source(100), tmp_path / "died"
    died.mkdir()
    urls = [(tmp_path / name).as_uri() for name in ("here", "ray")]
    built(urls[0], source, tiny, ThisProcess())
    killing = dying.Killing(executor, died)
    report = built(urls[1], source, tiny, killing)
    assert killing.killed == dict.fromkeys(dying.MOMENTS, 1)
    left = collect(open_store(urls[1]), keep=1, grace=timedelta(0))
    assert (left.manifests, left.files) == (0, 0)  # what was killed left nothing that nobody names
    here, on_ray = ([stored(shard) for shard in pull_shards(url)] for url in urls)
    assert on_ray == here
    assert (report.report.documents, sum(report.documents)) == (100, 100)


@pytest.mark.slow
def test_what_a_piece_raises_ends_the_build(
    tmp_path: Path, tiny: Any, eight: Any, write_source: Any, executor: RayExecutor
) -> None:
    url = (tmp_path / "store").as_uri()
    with pytest.raises(FingerprintMismatchError, match="was built with encoder 'tiny'"):
        built(url, write_source(20), tiny, executor, partial(LocalDocuments, eight))


@pytest.mark.slow
def test_a_piece_that_kills_every_worker_ends_the_build(
    tmp_path: Path, tiny: Any, write_source: Any, executor: RayExecutor, monkeypatch: Any
) -> None:
    class Fatal:
        def run(self, work: Work, pieces: Sequence[str]) -> Iterator[str]:
            return executor.run(FatalWork(), pieces)

    monkeypatch.setattr("tercet.cluster.ray.executor.RETRIES", 1)
    with pytest.raises(RayFailedError, match=r"the work on Ray failed .*run it again"):
        built((tmp_path / "store").as_uri(), write_source(5), tiny, Fatal())


@dataclass(frozen=True)
class FatalWork:
    encodes: bool = True

    def begin(self) -> Worker:
        return lambda _: os.kill(os.getpid(), signal.SIGKILL) or ""


@dataclass(frozen=True)
class Echo:
    encodes: bool = False

    def begin(self) -> Worker:
        return lambda piece: f"{piece} {os.environ['RAY_AUTH_MODE']}"


@pytest.fixture
def cluster(executor: RayExecutor) -> str:
    """The address of the session, which asks for its token."""
    import ray

    assert sorted(executor.run(Echo(), ["a", "b", "c"])) == ["a token", "b token", "c token"]
    return str(ray.get_runtime_context().gcs_address)


@pytest.mark.slow
async def test_a_job_is_built_on_a_cluster(
    tmp_path: Path, embedded_checkpoint: Path, cluster: str, write_source: Any
) -> None:
    data = tmp_path / "data"
    (data / "sources").mkdir(parents=True)
    for name, start in (("first.jsonl", 0), ("second.jsonl", 15)):
        write_source(20, name, start).rename(data / "sources" / name)
    shelf = EncoderShelf(
        LocalEncoding(load_encoder(str(embedded_checkpoint), threads=1), batch_tokens=512, queue_tokens=4096)
    )
    environment = {
        "TERCET_CHECKPOINT": str(embedded_checkpoint),
        "TERCET_RAY_ADDRESS": cluster,
        "TERCET_RAY_STORAGE": (tmp_path / "storage").as_uri(),
    }
    pool = Pool("operations", 2)
    with closing(CollectionRegistry(data / "collections")) as collections, closing(pool):
        manager = JobManager(data, collections, shelf, environment, pool, ray=True)
        await manager.start()
        for source in ("first.jsonl", "second.jsonl"):
            job = await manager.submit("articles", source, mode="upsert", engine="ray")
            while not manager.get(job.id).finished:  # noqa: ASYNC110  # a job tells nobody of its end
                await asyncio.sleep(0.1)
            done = manager.get(job.id)
            assert (done.state, done.error, done.documents_done, done.engine) == (
                "succeeded",
                None,
                20,
                "ray",
            )
        await manager.stop()
    with closing(Collection.open(data / "collections", "articles").snapshot()) as snapshot:
        assert snapshot.documents == 35
    assert verify(data / "collections", "articles") == []
    assert not [path for path in (tmp_path / "storage").rglob("*") if path.is_file()]


@pytest.mark.slow
def test_more_workers_than_fit_are_refused() -> None:
    resources = {"CPU": 4.0, "GPU": 1.0}
    fitted = partial(ActorPool.within, resources=resources, grows=False)
    assert fitted(ActorPool()) == FittedPool(1, 1, 1.0, 1.0)
    assert fitted(ActorPool(gpus=0.25)) == FittedPool(4, 4, 1.0, 0.25)
    assert fitted(ActorPool(gpus=0)) == FittedPool(4, 4, 1.0, 0)
    with pytest.raises(
        RayFailedError, match="3 workers of 2 CPUs and 0 GPUs are to encode, and Ray has 4 CPUs"
    ):
        fitted(ActorPool(workers=3, cpus=2, gpus=0))
    with pytest.raises(RayFailedError, match="ask for fewer"):
        fitted(ActorPool(gpus=2))


def test_a_cluster_is_asked_for_more_than_it_has_now(caplog: pytest.LogCaptureFixture) -> None:
    now = {"CPU": 4.0}
    grown = partial(ActorPool.within, resources=now, grows=True)
    assert grown(ActorPool(gpus=1)) == FittedPool(1, None, 1.0, 1)  # of a pool of GPUs that is at zero
    assert grown(ActorPool(workers=9, gpus=0)) == FittedPool(4, 9, 1.0, 0)
    assert grown(ActorPool(cpus=8)) == FittedPool(1, None, 8, 0.0)
    if find_spec("ray") is not None:
        RayExecutor("10.0.0.7:6379", ActorPool())._fit(now)
        assert "has no GPU now, so encoding takes CPUs; ask for GPUs (--worker-gpus 1)" in caplog.text
        RayExecutor(None, ActorPool())._fit(now)
        assert len(caplog.messages) == 1
