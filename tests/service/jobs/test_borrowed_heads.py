"""Builds of a server whose encoder borrows its heads: a child has the same, and no other encoder borrows."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tercet.index.catalog.settings import CollectionSettings
from tercet.index.collection import Collection
from tercet.models.encoder import Encoder
from tercet.models.loader import load_encoder
from tercet.models.representations import OUTPUTS
from tercet.models.weights.head_weights import read_heads, write_heads
from tercet.service.collections.registry import CollectionRegistry
from tercet.service.encoding.service import LocalEncoding, local_encoder
from tercet.service.encoding.shelf import EncoderShelf, Opening
from tercet.service.jobs.manager import JobManager
from tercet.service.load.pools import Pool
from tercet.service.settings.reading import load_settings
from tercet.service.settings.settings import Settings
from tests.models.conftest import write_bert
from tests.tiny.word_pieces import BERT_WIDTH


def encoding(encoder: Encoder) -> LocalEncoding:
    return LocalEncoding(encoder, batch_tokens=512, queue_tokens=4096)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """A fork without heads, which borrows those of its origin."""
    origin, fork = write_bert(tmp_path / "origin"), write_bert(tmp_path / "fork")
    (fork / "heads.safetensors").unlink()
    return Settings(
        data=tmp_path / "data",
        checkpoint=str(fork),
        heads=str(origin),
        engine="torch",
        device="cpu",
        threads=1,
    )


@pytest.fixture
async def manager(settings: Settings, tmp_path: Path, pool: Pool) -> AsyncIterator[JobManager]:
    """With one more encoder, "other", of the same width and with heads of its own."""
    other = write_bert(tmp_path / "other")
    heads = read_heads(other, BERT_WIDTH)
    assert heads.colbert is not None
    heads.colbert.bias[:] += 1
    write_heads(other, heads)
    sources = settings.data / "sources"
    sources.mkdir(parents=True)
    (sources / "one.jsonl").write_text(json.dumps({"id": "a", "text": "hello world"}))
    opening = Opening(
        lambda checkpoint: encoding(load_encoder(checkpoint, "torch", device="cpu")),
        lambda: {"other": str(other)},
        pool,
        1,
    )
    shelf = EncoderShelf(encoding(local_encoder(settings)), opening)
    registry = CollectionRegistry(settings.data / "collections")
    manager = JobManager(settings.data, registry, shelf, settings.encoder_environment, pool)
    await manager.start()
    yield manager
    await manager.stop()
    registry.close()


async def built(manager: JobManager, settings: Settings, encoder: str | None) -> CollectionSettings:
    """The settings of a collection that a job has built."""
    job = await manager.submit("made", "one.jsonl", encoder=encoder)
    for _ in range(4800):
        if manager.get(job.id).finished:
            break
        await asyncio.sleep(0.05)
    assert manager.get(job.id).state == "succeeded", manager.get(job.id)
    return Collection.open(settings.data / "collections", "made").settings


@pytest.mark.slow
async def test_a_build_borrows_what_the_server_borrows(manager: JobManager, settings: Settings) -> None:
    found = await built(manager, settings, None)
    lent = local_encoder(settings).info
    assert lent.sides == OUTPUTS
    assert found.fingerprint == lent.fingerprint
    assert found.checkpoint == f"{settings.checkpoint} with heads of {settings.heads}"


@pytest.mark.slow
async def test_a_build_by_another_encoder_borrows_nothing(
    manager: JobManager, settings: Settings, tmp_path: Path
) -> None:
    found = await built(manager, settings, "other")
    assert found.fingerprint == load_encoder(str(tmp_path / "other"), "torch", device="cpu").info.fingerprint
    assert found.checkpoint == str(tmp_path / "other")


def test_an_empty_value_means_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERCET_HEADS", "")
    assert load_settings().heads is None
    monkeypatch.setenv("TERCET_HEADS", "a/b")
    assert load_settings().heads == "a/b"
    assert load_settings().encoder_environment["TERCET_HEADS"] == "a/b"
