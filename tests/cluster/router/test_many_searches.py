"""As many searches wait for shards as come: threads do not bound them, and what is too much is refused."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from tercet.cluster.router.collections import SEARCH_THREADS
from tercet.models.encoder import Encoder
from tercet.service.app import create_app
from tercet.service.remote.transport import RemoteAnswer, RemoteRequest
from tercet.service.settings.settings import Settings
from tests.cluster.router.conftest import AppTransport, ready, router_over
from tests.service.conftest import serving

MOST = SEARCH_THREADS + 36


class Holding(AppTransport):
    """The way to a shard that answers no search before so many wait."""

    def __init__(self, name: str, app: Any, most: int) -> None:
        super().__init__(name, app)
        self.most = most
        self.waiting = 0
        self.all_wait = asyncio.Event()

    async def request(self, request: RemoteRequest) -> RemoteAnswer:
        if "/candidates" in request.path:
            self.waiting += 1
            if self.waiting == self.most:
                self.all_wait.set()
            await self.all_wait.wait()
        return await super().request(request)


async def test_as_many_searches_wait_as_come(tmp_path: Path, tiny: Encoder) -> None:
    shard = create_app(Settings(data=tmp_path / "shard", max_wait_seconds=60), tiny)
    async with shard.router.lifespan_context(shard):
        transport = Holding("shard", shard, MOST)
        await ready([transport])
        settings = Settings(data=tmp_path / "router", max_concurrent_requests=2 * MOST, max_wait_seconds=60)
        async with serving(router_over(settings, tiny, [transport])) as client:
            await client.put("/collections/demo", json={"lexical": "idf"})
            documents = {"documents": [{"id": "a", "text": "tea"}]}
            await client.put("/collections/demo/documents", json=documents)
            search = {"collection": "demo", "query": "tea"}
            async with asyncio.timeout(40):
                answers = await asyncio.gather(*(client.post("/search", json=search) for _ in range(MOST)))
    assert {answer.status_code for answer in answers} == {200}
    assert all(answer.json()["hits"][0]["id"] == "a" for answer in answers)


async def test_what_is_too_much_is_refused(tmp_path: Path, tiny: Encoder) -> None:
    shard = create_app(Settings(data=tmp_path / "shard"), tiny)
    async with shard.router.lifespan_context(shard):
        transport = Holding("shard", shard, 10)
        await ready([transport])
        settings = Settings(data=tmp_path / "router", max_concurrent_requests=9)
        async with serving(router_over(settings, tiny, [transport])) as client:
            await client.put("/collections/demo", json={})
            search = {"collection": "demo", "query": "tea"}
            tasks = [asyncio.create_task(client.post("/search", json=search)) for _ in range(20)]
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            refused = next(iter(done)).result()
            transport.all_wait.set()
            answers = await asyncio.gather(*tasks)
    assert refused.status_code == 429
    assert int(refused.headers["Retry-After"]) > 0
    assert {answer.status_code for answer in answers} == {200, 429}
