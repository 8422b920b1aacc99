"""The server's own encoder and others: which is whose, how many stay open, who makes room."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tercet.index.catalog.settings import CollectionSettings
from tercet.index.errors import FingerprintMismatchError
from tercet.ingest.target import settings_for
from tercet.models.errors import CheckpointError, EncoderUnavailableError
from tercet.service.encoding.service import EncodingService, LocalEncoding
from tercet.service.encoding.shelf import EncoderShelf, Opening
from tercet.service.exceptions import OverloadedError
from tercet.service.load.pools import Pool

ELSEWHERE = ("/a/red", "/a/green", "/a/blue")


def encoding(encoder: Any) -> LocalEncoding:
    return LocalEncoding(encoder, batch_tokens=64, queue_tokens=256)


def at(tiny: Any, seed: int, checkpoint: str) -> Any:
    """A tiny encoder that came from a folder."""
    encoder = type(tiny)(seed=seed)
    encoder._info = replace(encoder.info, name=Path(checkpoint).name, checkpoint=checkpoint)
    return encoder


class Others:
    """Encoders that can be opened, and what was done with them."""

    def __init__(self, tiny: Any, pool: Pool, most: int) -> None:
        self.encoders = {
            checkpoint: at(tiny, seed, checkpoint) for seed, checkpoint in enumerate(ELSEWHERE, start=1)
        }
        self.opened: list[str] = []
        self.before_open: Callable[[str], None] = lambda _: None
        self.shelf = EncoderShelf(encoding(tiny), Opening(self._open, self._named, pool, most))

    def _open(self, checkpoint: str) -> LocalEncoding:
        self.before_open(checkpoint)
        self.opened.append(checkpoint)
        if checkpoint not in self.encoders:
            raise CheckpointError(f"{checkpoint} is not there")
        return encoding(self.encoders[checkpoint])

    def _named(self) -> dict[str, str]:
        return {Path(checkpoint).name: checkpoint for checkpoint in self.encoders}

    def collection(self, built_with: str, **changes: Any) -> CollectionSettings:
        return replace(settings_for("x", self.encoders[built_with].info, {}), **changes)

    async def of(self, checkpoint: str) -> EncodingService:
        return await self.shelf.of_collection(self.collection(checkpoint))


@pytest.fixture
def others(tiny: Any, pool: Pool) -> Others:
    return Others(tiny, pool, most=2)


async def test_a_collection_gets_the_encoder_that_it_was_built_with(others: Others, tiny: Any) -> None:
    assert await others.shelf.of_collection(settings_for("x", tiny.info, {})) is others.shelf.own
    assert others.opened == []
    red = await others.of("/a/red")
    vectors = await red.encode(["tea"])
    expected = encoding(others.encoders["/a/red"])
    assert (vectors.dense == (await expected.encode(["tea"])).dense).all()
    assert (vectors.dense != (await others.shelf.own.encode(["tea"])).dense).any()
    await others.shelf.close()
    await expected.close()


async def test_those_who_come_together_open_it_once(others: Others) -> None:
    found = await asyncio.gather(*(others.of("/a/red") for _ in range(5)))
    assert others.opened == ["/a/red"]
    assert {each.info.name for each in found} == {"red"}


async def test_who_leaves_does_not_end_what_others_wait_for(others: Others) -> None:
    first = asyncio.create_task(others.of("/a/red"))
    await asyncio.sleep(0)
    second = asyncio.create_task(others.of("/a/red"))
    await asyncio.sleep(0)
    first.cancel()
    assert (await second).info.name == "red"
    assert others.opened == ["/a/red"]


async def test_the_one_of_no_use_for_longest_makes_room(others: Others) -> None:
    for checkpoint in ("/a/red", "/a/green", "/a/red", "/a/blue"):  # red is used again: green goes
        await others.of(checkpoint)
    assert others.opened == ["/a/red", "/a/green", "/a/blue"]
    assert [name for name, _ in others.shelf.pending_tokens()] == ["tiny", "red", "blue"]


async def test_one_that_somebody_has_stays_open(others: Others) -> None:
    red = await others.of("/a/red")
    await others.of("/a/green")
    await others.of("/a/blue")  # green was used last, but nobody has it
    assert [name for name, _ in others.shelf.pending_tokens()] == ["tiny", "red", "blue"]
    assert len(await red.encode(["tea"])) == 1
    blue = await others.of("/a/blue")
    with pytest.raises(OverloadedError, match=r"2 other encoders are in use.*'green'") as caught:
        await others.of("/a/green")
    assert caught.value.reason == "encoders"
    del blue
    assert (await others.of("/a/green")).info.name == "green"


async def test_none_beside_its_own_where_none_is_allowed(tiny: Any, pool: Pool) -> None:
    with pytest.raises(EncoderUnavailableError, match="max_checkpoints is 0"):
        await Others(tiny, pool, most=0).of("/a/red")


async def test_what_cannot_be_opened_is_tried_again_and_tells_no_path(others: Others) -> None:
    collection = others.collection("/a/red", checkpoint="/gone/red")
    for _ in range(2):
        with pytest.raises(EncoderUnavailableError, match="encoder 'red' cannot be opened") as caught:
            await others.shelf.of_collection(collection)
        assert "/gone" not in str(caught.value)
    others.encoders["/gone/red"] = others.encoders["/a/red"]
    assert (await others.shelf.of_collection(collection)).info.name == "red"


async def test_another_encoder_in_its_place_is_refused(others: Others) -> None:
    collection = others.collection("/a/red", fingerprint="0" * 64)
    with pytest.raises(FingerprintMismatchError, match="0" * 64):
        await others.shelf.of_collection(collection)


async def test_a_checkpoint_that_was_moved_is_the_servers_own(others: Others, tiny: Any) -> None:
    """Also with an adapter, whose fingerprint is not that of the encoder alone."""
    info = tiny.adapter_info("law")
    collection = replace(settings_for("x", info, {}), checkpoint="/gone/tiny")
    assert await others.shelf.of_collection(collection) is others.shelf.own
    assert others.opened == []


async def test_a_collection_from_a_folder_that_is_not_known_is_refused(others: Others) -> None:
    """As those are that were made before collections kept where their encoder is."""
    with pytest.raises(FingerprintMismatchError, match="give --checkpoint red"):
        await others.shelf.of_collection(others.collection("/a/red", checkpoint=None))


async def test_requests_name_encoders(others: Others, tiny: Any) -> None:
    shelf = others.shelf
    for name in (None, "tiny", tiny.info.fingerprint):
        assert await shelf.named(name) is shelf.own
    assert await shelf.named("/a/red") is None  # no client may have anything opened by its path
    red = await shelf.named("red")
    assert red is not None
    by_fingerprint = await shelf.named(red.info.fingerprint)
    assert by_fingerprint is not None
    assert by_fingerprint.info.name == "red"
    assert others.opened == ["/a/red"]
    names = await shelf.names()
    assert names[0] == "tiny"
    assert {"red", "green", "blue", "minilm-m3", "multi-m3"} <= set(names)
    assert len(names) == len(set(names))


async def test_a_shelf_without_others_has_its_own_alone(tiny: Any) -> None:
    shelf = EncoderShelf(encoding(tiny))
    assert await shelf.names() == ["tiny"]
    assert await shelf.named("multi-m3") is None
    foreign = settings_for("x", at(tiny, 1, "/a/red").info, {})
    with pytest.raises(FingerprintMismatchError):
        await shelf.of_collection(foreign)
