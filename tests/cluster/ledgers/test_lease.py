"""Which of several servers is to write, by their signs of life; and a real one that takes over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tercet.cluster.ledgers.lease import FOLDER, StoreLease
from tercet.cluster.objects.folder import FolderStore
from tercet.cluster.objects.store import ObjectStore
from tests.cluster.ledgers.conftest import FailingStore, Machine
from tests.endurance.cluster.nodes import Node

SECONDS = 10.0


class Clock:
    """Seconds, as a test says."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def root(store: FailingStore, machine: Callable[[str], Machine], tmp_path: Path) -> ObjectStore:
    """The store above that of a collection with a ledger."""
    with machine("first").open():
        pass
    return FailingStore(tmp_path / "store")


@pytest.fixture
def lease(root: ObjectStore, clock: Clock, tmp_path: Path) -> Callable[..., StoreLease]:
    """Makes that of a server, by the name of its data root."""

    def make(name: str, *, standby: bool = False) -> StoreLease:
        (tmp_path / name).mkdir(exist_ok=True)
        return StoreLease(root, tmp_path / name, SECONDS, standby=standby, clock=clock)

    return make


def signs(root: ObjectStore) -> list[str]:
    return [each.path for each in root.list(FOLDER)]


def test_whoever_writes_gives_signs_and_keeps_the_newest(root: Any, lease: Any, clock: Clock) -> None:
    first = lease("first")
    assert first.is_held
    for number in (1, 2, 3):
        assert first.keep()
        assert signs(root) == [f"signs/00000000000{number}"]
    again = lease("first")  # after it was started again
    assert again.keep()
    assert signs(root) == ["signs/000000000004"]


def test_a_server_that_stands_by_waits_for_the_last_sign_to_grow_old(lease: Any, clock: Clock) -> None:
    first, second = lease("first"), lease("second", standby=True)
    assert not second.is_held
    first.keep()
    for _ in range(5):
        assert not second.keep()
        clock.now += SECONDS - 1
        assert first.keep()
    assert not second.keep()
    clock.now += SECONDS - 0.1
    assert not second.keep()
    clock.now += 0.2
    assert second.keep()
    assert second.is_held
    assert not first.keep()  # it was asleep
    assert not first.is_held


def test_of_two_that_stand_by_one_takes_over(lease: Any, clock: Clock) -> None:
    first, second, third = lease("first"), lease("second", standby=True), lease("third", standby=True)
    first.keep()
    assert [second.keep(), third.keep()] == [False, False]
    clock.now += SECONDS
    assert [second.keep(), third.keep()] == [True, False]
    clock.now += SECONDS - 1
    assert [second.keep(), third.keep()] == [True, False]


def test_two_that_see_the_same_sign_create_one_next(root: Any, lease: Any, clock: Clock) -> None:
    first, second = lease("first"), lease("second", standby=True)
    first.keep()
    second.keep()
    clock.now += SECONDS
    second._look()
    assert first.keep()
    assert not second._sign()


def test_without_a_ledger_nobody_takes_over(tmp_path: Path, clock: Clock) -> None:
    (tmp_path / "second").mkdir()
    store = FolderStore(tmp_path / "empty")
    second = StoreLease(store, tmp_path / "second", SECONDS, standby=True, clock=clock)
    for _ in range(3):
        assert not second.keep()
        clock.now += SECONDS


def test_a_server_that_is_promoted_by_hand_is_not_followed_by_a_second_promotion(
    lease: Any, clock: Clock
) -> None:
    first, second = lease("first"), lease("second", standby=True)
    first.keep()
    assert not second.keep()
    clock.now += SECONDS - 1
    lease("third").take()
    clock.now += 2
    assert not second.keep()
    assert lease("third").keep()


def test_a_store_that_fails_is_told_once_and_changes_nothing(
    root: FailingStore, lease: Any, clock: Clock, caplog: Any
) -> None:
    first = lease("first")
    first.keep()
    root.failures = ["before", "before"]
    assert first.keep()  # for all it knows
    assert first.keep()
    assert len([each for each in caplog.records if "is lost" in each.message]) == 1
    assert first.keep()


@pytest.mark.slow
def test_a_server_that_stands_by_takes_over_and_the_router_writes_to_it(tmp_path: Path) -> None:
    """Nothing that was acknowledged is lost, and the former writer is refused."""
    url, documents = f"file://{tmp_path}/store", "/collections/notes/documents"
    common = {"ledger_url": url, "lease_seconds": 2}
    settings = [{**common, "publish_seconds": 1}, {**common, "follow": url, "follow_seconds": 0.5}]
    nodes = []
    for number, own in enumerate(settings):
        (tmp_path / f"data{number}").mkdir()
        nodes.append(Node(tmp_path / f"data{number}", own))
    (tmp_path / "router").mkdir()
    router = Node(tmp_path / "router", {"shards": "|".join(node.url for node in nodes)})

    async def put(id: str) -> httpx.Response:
        async with httpx.AsyncClient(timeout=30) as client:
            body = {"documents": [{"id": id, "text": f"note {id}"}]}
            return await client.put(f"{router.url}{documents}", json=body)

    async def run() -> None:
        first, second = nodes
        first.start()
        router.start()
        await asyncio.gather(first.ready(), router.ready())
        async with httpx.AsyncClient(timeout=30) as client:
            (await client.put(f"{router.url}/collections/notes", json={})).raise_for_status()
            second.start()
            await second.ready()
            assert (await client.get(f"{second.url}/ready")).json()["writes"] == "elsewhere"
            (await put("before")).raise_for_status()
            await first.kill()
            for _ in range(300):
                answer = await put("after")
                if answer.is_success:
                    break
                assert answer.status_code == 503
                await asyncio.sleep(0.1)
            answer.raise_for_status()
            there = (await client.get(f"{second.url}{documents}")).json()["documents"]
            assert [each["id"] for each in there] == ["after", "before"]
            first.start()
            await first.ready()
            assert (await client.get(f"{first.url}/ready")).json()["writes"] == "elsewhere"
            refused = await client.put(
                f"{first.url}{documents}", json={"documents": [{"id": "x", "text": "x"}]}
            )
            assert (refused.status_code, refused.json()["error"]["code"]) == (409, "writer_replaced")
            (await put("later")).raise_for_status()

    try:
        asyncio.run(run())
    finally:
        for node in (*nodes, router):
            asyncio.run(node.kill())
