"""Builds on several nodes of Ray: all of them work, parts of a GPU are shared, and one may be lost."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tercet.cluster.building import blocks
from tercet.cluster.building.build import build_shards
from tercet.cluster.building.encoding import Encoding
from tercet.cluster.building.settings import ShardedBuild
from tercet.cluster.ray.executor import ActorPool, RayExecutor
from tercet.cluster.ray.session import prepare
from tercet.cluster.work.executor import Executor, ThisProcess, Work, Worker
from tercet.ingest.document_encoders import LocalDocuments

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore"),  # of Ray itself, about its own settings and processes
]

WAITED_SECONDS = 240
STORE_BYTES = 10**8
STARTS = 3


@dataclass
class Nodes:
    """A cluster of this machine: a head, and a second node with a GPU, which is none; one CPU each."""

    cluster: Any
    second: Any
    address: str


@pytest.fixture(scope="module")
def nodes(ray_alone: None) -> Iterator[Nodes]:
    if find_spec("ray") is None:
        pytest.skip("Ray is not installed (pip install '.[ray]')")
    prepare(None)
    import ray.cloudpickle
    from ray.cluster_utils import Cluster

    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    ray.cloudpickle.register_pickle_by_value(sys.modules["tests.conftest"])
    own = {"num_cpus": 1, "object_store_memory": STORE_BYTES, "include_dashboard": False}
    cluster = started(lambda: Cluster(initialize_head=True, head_node_args={**own, "num_gpus": 0}))
    second = started(lambda: cluster.add_node(num_cpus=1, num_gpus=1, object_store_memory=STORE_BYTES))
    yield Nodes(cluster, second, cluster.address)
    cluster.shutdown()


def started(start: Callable[[], Any]) -> Any:
    """What is started. Ray waits for half a minute, which is too short on a busy machine."""
    for _ in range(STARTS):
        with suppress(Exception):
            return start()
    return start()


@dataclass(frozen=True)
class Meeting:
    """A work whose processes wait until so many have begun; each says what it sees of its node and GPU."""

    folder: Path
    workers: int
    encodes: bool = True

    def begin(self) -> Worker:
        import ray

        seen = f"{ray.get_runtime_context().get_node_id()} {os.environ.get('CUDA_VISIBLE_DEVICES', '')}"
        (self.folder / str(os.getpid())).touch()
        within(lambda: len(list(self.folder.iterdir())) >= self.workers)
        return lambda piece: f"{piece} {seen}"


@dataclass(frozen=True)
class Held(Encoding):
    """Encodes; on the second node a piece waits until that is lost, on the other until it is reached."""

    node: str = ""
    folder: Path = Path()

    def begin(self) -> Worker:
        import ray

        do, reached = super().begin(), self.folder / "reached"
        is_lost = ray.get_runtime_context().get_node_id() == self.node

        def held(piece: str) -> str:
            if is_lost:
                reached.touch()
            within(lambda: not is_lost and reached.exists())
            return do(piece)

        return held


@dataclass(frozen=True)
class Holding:
    """An executor that holds what the second node encodes."""

    executor: Executor
    node: str
    folder: Path

    def run(self, work: Work, pieces: Sequence[str]) -> Iterator[str]:
        if isinstance(work, Encoding):
            work = Held(work.url, work.settings, work.open_encoder, self.node, self.folder)
        return self.executor.run(work, pieces)


def within(is_so: Any) -> None:
    """Waits until something is so."""
    deadline = time.monotonic() + WAITED_SECONDS
    while not is_so():
        if time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(0.05)


def met(nodes: Nodes, folder: Path, pool: ActorPool) -> list[list[str]]:
    """What two workers see, of each piece: the node, and the GPUs where there are any."""
    folder.mkdir()
    executor = RayExecutor(nodes.address, pool)
    try:
        found = list(executor.run(Meeting(folder, 2), [str(piece) for piece in range(8)]))
    finally:
        executor.close()
    assert sorted(record.split()[0] for record in found) == [str(piece) for piece in range(8)]
    return sorted({tuple(record.split()[1:]) for record in found})


def test_all_nodes_work_and_two_workers_share_a_gpu(nodes: Nodes, tmp_path: Path) -> None:
    on_cpus = met(nodes, tmp_path / "cpus", ActorPool(gpus=0))
    assert len({node for node, *_ in on_cpus}) == 2
    second = nodes.second.node_id
    assert met(nodes, tmp_path / "gpus", ActorPool(cpus=0.5, gpus=0.5)) == [(second, "0")]


def test_a_node_that_is_lost_leaves_the_build_equal(
    nodes: Nodes,
    tmp_path: Path,
    tiny: Any,
    write_source: Any,
    pull_shards: Any,
    stored: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(blocks.blocks_of, "__defaults__", (16, 2**20))
    source, folder = write_source(100), tmp_path / "held"
    folder.mkdir()

    def lose() -> None:
        within((folder / "reached").exists)
        nodes.cluster.remove_node(nodes.second, allow_graceful=False)

    executor = RayExecutor(nodes.address, ActorPool(gpus=0))
    losing = threading.Thread(target=lose)
    losing.start()
    urls = [(tmp_path / name).as_uri() for name in ("here", "ray")]
    asked, documents = ShardedBuild("articles", source, 2), LocalDocuments(tiny)
    executors = [ThisProcess(), Holding(executor, nodes.second.node_id, folder)]
    try:
        for url, each in zip(urls, executors, strict=True):
            build_shards(asked, documents, partial(LocalDocuments, tiny), url, each)
    finally:
        executor.close()
        losing.join()
    assert (folder / "reached").exists()
    here, on_ray = ([stored(shard) for shard in pull_shards(url)] for url in urls)
    assert on_ray == here
