"""What `/ready` says of an encoder or a disk that fails or hangs, and that a server so hung still ends."""

import asyncio
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest

from tercet.service.collections.data_root import DataRoot, Look
from tercet.service.encoding.health import FAILURES
from tercet.service.load.pools import OPERATIONS_THREADS
from tests.full_disk import FILLER, fill
from tests.service.polling import pause


async def test_ready_says_no_while_every_batch_fails(
    make_client: Any, held: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    encode = held.encode_tokens
    broken = threading.Event()

    def encode_or_fail(*args: Any) -> Any:
        if broken.is_set():
            raise RuntimeError("CUDA error: an illegal memory access was encountered")
        return encode(*args)

    monkeypatch.setattr(held, "encode_tokens", encode_or_fail)
    async with make_client(encoder=held) as client:
        broken.set()
        for _ in range(FAILURES):
            assert (await client.get("/ready")).status_code == 200
            assert (await client.post("/embed", json={"inputs": "tea"})).status_code == 500
        response = await client.get("/ready")
        assert response.status_code == 503
        assert "batches failed" in response.json()["error"]["message"]
        assert (await client.get("/health")).status_code == 200
        broken.clear()  # no request comes, as a balancer sends none
        while (await client.get("/ready")).status_code != 200:  # as where a probe takes more than a moment
            await pause()


async def test_ready_says_no_while_a_batch_hangs(make_client: Any, held: Any) -> None:
    async with make_client(encoder=held, stall_seconds=0.2) as client:
        held.gate.clear()
        request = asyncio.create_task(client.post("/embed", json={"inputs": "tea"}))
        while (response := await client.get("/ready")).status_code == 200:
            await pause()
        assert response.status_code == 503
        assert "more than 0.2 s (setting stall_seconds)" in response.json()["error"]["message"]
        held.gate.set()
        assert (await request).status_code == 200
        assert (await client.get("/ready")).status_code == 200


async def test_ready_does_not_wait_for_a_disk_that_hangs(
    make_client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = threading.Event()
    monkeypatch.setattr("tercet.service.runtime.LOOK_SECONDS", 0.01)
    monkeypatch.setattr("tercet.service.collections.data_root.LATE_SECONDS", 0.2)
    async with make_client() as client:
        monkeypatch.setattr(DataRoot, "_look", lambda _: gate.wait(60) and Look())
        while (response := await client.get("/ready")).status_code == 200:
            await pause()
        gate.set()
    assert response.status_code == 503
    assert "has not answered for 0.2 s" in response.json()["error"]["message"]


async def test_ready_and_metrics_do_not_wait_behind_other_operations(
    make_client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As while many clients list many collections."""
    gate = threading.Event()
    monkeypatch.setattr("tercet.service.runtime.LOOK_SECONDS", 0.01)
    async with make_client() as client:
        runtime = client._transport.app.state.runtime
        pool, data_root = runtime.pools.operations, runtime.data_root
        waiting = [asyncio.create_task(pool.run(gate.wait, 60)) for _ in range(OPERATIONS_THREADS)]
        behind = asyncio.create_task(pool.run(int))
        async with asyncio.timeout(50):
            for _ in range(2):  # the first may have begun before
                looked = data_root._looked
                while data_root._looked == looked:
                    await pause()
        answers = [await client.get(path) for path in ("/health", "/ready", "/metrics")]
        assert not behind.done()
        gate.set()
        await asyncio.gather(*waiting, behind)
    assert [answer.status_code for answer in answers] == [200, 200, 200]


async def test_a_full_disk_is_said_and_counts_where_writes_are_required(
    make_client: Any, data: Path, small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tercet.service.runtime.LOOK_SECONDS", 0.01)
    root = shutil.copytree(data, small_disk / "data")
    for required, status in (("reads", 200), ("writes", 503)):
        async with make_client(data=root, ready_requires=required) as client:
            search = {"collection": "demo", "query": "tea"}
            assert (await client.get("/ready")).json()["writes"] == "ready"
            while (response := await client.get("/ready")).json().get("writes") == "ready":
                fill(small_disk)  # again, as a look at the disk may have taken room and given it back
                await pause()
            assert response.status_code == status
            if required == "reads":
                assert response.json() == {"status": "ready", "reads": "ready", "writes": "storage_full"}
            else:
                assert "(setting ready_requires)" in response.json()["error"]["message"]
            assert (await client.post("/search", json=search)).status_code == 200
            (small_disk / FILLER).unlink()
            while (await client.get("/ready")).json().get("writes") != "ready":
                await pause()


async def test_a_hung_encoder_does_not_keep_the_server_from_ending(make_client: Any, held: Any) -> None:
    async with make_client(encoder=held, shutdown_seconds=0) as client:
        held.gate.clear()
        request = asyncio.create_task(client.post("/embed", json={"inputs": "tea"}))
        while (await client.get("/metrics")).text.count("tercet_queue_tokens 0.0"):
            await pause()
        runtime = client._transport.app.state.runtime
    assert runtime.abandoned
    held.gate.set()
    await request
