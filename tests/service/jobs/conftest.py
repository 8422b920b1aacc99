"""Fixtures of this folder's tests."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from tercet.models.encoder import EncoderInfo
from tercet.models.loader import load_encoder
from tercet.service.collections.registry import CollectionRegistry
from tercet.service.encoding.service import LocalEncoding
from tercet.service.encoding.shelf import EncoderShelf
from tercet.service.jobs.manager import JobManager
from tercet.service.load.pools import Pool

MakeManager = Callable[[], JobManager]


@pytest.fixture(scope="module")
def encoders(embedded_checkpoint: Path) -> EncoderShelf:
    encoder = load_encoder(str(embedded_checkpoint), threads=1)
    return EncoderShelf(LocalEncoding(encoder, batch_tokens=512, queue_tokens=4096))


@pytest.fixture(scope="module")
def info(encoders: EncoderShelf) -> EncoderInfo:
    return encoders.own.info


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data root with one short source and one that takes minutes."""
    sources = tmp_path / "sources"
    sources.mkdir()
    short = [{"id": f"d{i}", "text": f"tea and water {i}"} for i in range(20)]
    (sources / "short.jsonl").write_text("\n".join(map(json.dumps, short)))
    text = "Water turns to steam and drives the engine of the train. " * 12
    with (sources / "long.jsonl").open("w") as file:  # the first documents are quick
        for i in range(20_000):
            file.write(json.dumps({"id": f"d{i}", "text": f"{i} {' ' * 600 if i < 300 else text}"}) + "\n")
    (sources / "bad.jsonl").write_text('{"id": "a", "text": "x"}\n{"id": "b"}')
    return tmp_path


@pytest.fixture
def collections(data: Path) -> Iterator[CollectionRegistry]:
    registry = CollectionRegistry(data / "collections")
    yield registry
    registry.close()


@pytest.fixture
async def make(
    data: Path, collections: CollectionRegistry, encoders: EncoderShelf, embedded_checkpoint: Path
) -> AsyncIterator[MakeManager]:
    made: list[JobManager] = []
    pool = Pool("operations", 2)

    def make() -> JobManager:
        environment = {"TERCET_CHECKPOINT": str(embedded_checkpoint), "TERCET_THREADS": "2"}
        made.append(JobManager(data, collections, encoders, environment, pool))
        return made[-1]

    yield make
    for manager in made:
        await manager.stop()
    pool.close()


@pytest.fixture
async def manager(make: MakeManager) -> JobManager:
    manager = make()
    await manager.start()
    return manager
