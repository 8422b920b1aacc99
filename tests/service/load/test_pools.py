"""Each kind of work has threads of its own."""

import asyncio
import threading
from concurrent.futures import Future
from typing import Any

import pytest

from tercet.index.snapshot import Snapshot
from tercet.service.load.clients import CLIENT
from tercet.service.load.deadlines import within
from tercet.service.load.pools import Pool
from tercet.service.load.relay import relay
from tests.service.polling import turn_of_the_loop

BEYOND_ANY_POOL = 80
SEARCH = {"collection": "demo", "query": "hot tea"}


async def test_work_runs_in_threads_of_the_pools_name() -> None:
    pool = Pool("brewing", 1)
    assert (await pool.run(lambda: threading.current_thread().name)).startswith("brewing")
    with pytest.raises(ZeroDivisionError):
        await pool.run(divmod, 1, 0)
    pool.close()


async def test_a_thread_of_the_pool_works_itself() -> None:
    """Where it waited for another one, all could wait for each other."""
    pool, other = Pool("brewing", 1), Pool("cooling", 1)

    async def work() -> list[tuple[bool, bool]]:
        seen = [(pool.is_here, other.is_here)]
        await pool.run(turn_of_the_loop())  # work that ends at once would be gone on from here
        seen.append((pool.is_here, other.is_here))
        await pool.run(int)
        seen.append((pool.is_here, other.is_here))
        await other.run(pool.submit(int).result)  # as soon as this thread of `pool` waits
        seen.append((pool.is_here, other.is_here))
        return seen

    assert await relay(work()) == [(False, False), (True, False), (True, False), (False, True)]

    def waits(task: Pool) -> Any:
        with pytest.raises(StopIteration) as end:  # of a coroutine that awaits nothing
            task.run(divmod, 7, 2).send(None)
        return end.value.value

    assert await pool.run(waits, pool) == (3, 1)
    pool.close()
    other.close()


async def test_clients_take_turns() -> None:
    pool, gate, order = Pool("brewing", 1), threading.Event(), list[str]()
    works: list[Future[Any]] = [pool.submit(gate.wait, 60)]
    for client, count in (("greedy", 4), ("polite", 2)):
        token = CLIENT.set(client)
        works += [pool.submit(order.append, f"{client} {number}") for number in range(count)]
        CLIENT.reset(token)
    gate.set()
    for work in works:
        work.result(60)
    assert order == ["greedy 0", "polite 0", "greedy 1", "polite 1", "greedy 2", "greedy 3"]
    pool.close()


def test_what_waits_in_a_pool_that_closes_is_cancelled() -> None:
    pool, gate = Pool("brewing", 1), threading.Event()
    running, waiting = pool.submit(gate.wait, 60), pool.submit(int)
    pool.close()
    assert waiting.cancelled()
    with pytest.raises(RuntimeError):
        pool.submit(int)
    gate.set()
    assert running.result(60)


async def test_work_that_nobody_awaits_any_more_is_not_begun() -> None:
    pool, gate, begun = Pool("brewing", 1), threading.Event(), []
    first = asyncio.create_task(pool.run(gate.wait, 60))
    second = asyncio.create_task(pool.run(begun.append, "second"))
    await asyncio.sleep(0)
    second.cancel()
    await asyncio.sleep(0)
    gate.set()
    assert await first
    await pool.run(begun.append, "third")
    assert begun == ["third"]
    pool.close()


@pytest.mark.parametrize("relayed", [True, False])
async def test_work_that_no_thread_took_in_time_fails_at_its_deadline(relayed: bool) -> None:
    """Not only once a thread is free, which may be long after."""
    pool, gate, begun = Pool("brewing", 1), threading.Event(), list[str]()
    first = asyncio.create_task(pool.run(gate.wait, 60))
    deadline = within(0.05)
    work = pool.run_in_time(deadline, TimeoutError, None, begun.append, "late")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(relay(work, deadline) if relayed else work, 20)
    assert not first.done()
    gate.set()
    await first
    assert await pool.run_in_time(within(60), TimeoutError, None, divmod, 7, 2) == (3, 1)
    assert begun == []
    pool.close()


async def test_who_leaves_work_with_a_deadline_is_cancelled() -> None:
    pool, gate = Pool("brewing", 1), threading.Event()
    first = asyncio.create_task(pool.run(gate.wait, 60))
    second = asyncio.create_task(pool.run_in_time(within(60), TimeoutError, None, int))
    await asyncio.sleep(0)
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    gate.set()
    await first
    pool.close()


@pytest.mark.slow
async def test_operations_answer_while_searches_and_the_encoder_are_stuck(
    make_client: Any, held: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = threading.Event()
    answer = Snapshot.answer

    def stuck(*args: Any, **options: Any) -> Any:
        assert gate.wait(60)
        return answer(*args, **options)

    async with make_client(encoder=held) as client:
        ready = (await client.post("/embed", json={"inputs": "tea", "input_type": "query"})).json()
        query = {side: ready["embeddings"][0][side] for side in ("dense", "colbert")}
        query["sparse"] = {name: ready["embeddings"][0]["sparse"][name] for name in ("token_ids", "weights")}
        monkeypatch.setattr(Snapshot, "answer", stuck)
        held.gate.clear()
        bodies = [SEARCH, {**SEARCH, "query": query}] * BEYOND_ANY_POOL
        searches = [asyncio.create_task(client.post("/search", json=body)) for body in bodies]
        try:
            async with asyncio.timeout(50):
                for path in ("/health", "/ready", "/metrics", "/info", "/collections", "/jobs"):
                    assert (await client.get(path)).status_code == 200, path
                assert (await client.get("/collections/demo/documents/tea")).status_code == 200
                assert not any(task.done() for task in searches)
        finally:
            gate.set()
            held.gate.set()
        assert {answer.status_code for answer in await asyncio.gather(*searches)} == {200}
