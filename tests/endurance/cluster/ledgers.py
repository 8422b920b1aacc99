"""Is an acknowledged write lost, or a wrong value read, when servers with a `--ledger-url` lose their disks?

Three shards behind two routers, each with a server that writes and one that follows, and the store that both
use. Clients put, delete and read documents through the routers without pause. Meanwhile, round after round,
servers are killed, stopped and paused, lose their disks, are replaced by those that followed them, come back
as who they were, start from a copy of another's disk, and messages are lost on their way. Each document's
history must be linearizable, and at the end every server must have the same documents. With --lease nobody
promotes a server by hand: they take over by themselves, and routers find out. With --clocks each server's
clock is days off, and is set anew in between (needs libfaketime).

Run: python -m tests.endurance.cluster.ledgers [--rounds 100] [--seed 0] [--lease] [--clocks]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from tests.endurance.cluster.ledger_shards import (
    DOWN_SECONDS,
    FAKETIME,
    FAULTS,
    FAULTS_WITH_LEASE,
    NAME,
    Fault,
    Shard,
    clocks_set,
    set_clock,
    with_own_clock,
)
from tests.endurance.cluster.nodes import Node
from tests.endurance.concurrency.linearizable import Operation, is_linearizable
from tests.endurance.serving.fault_proxy import FaultProxy

SHARDS, ROUTERS, CLIENTS, IDS = 3, 2, 6, 30
PAUSE_SECONDS = 0.05  # of a client between two operations
CAUGHT_UP_SECONDS = 60.0
LEASE_SECONDS = 3.0


@dataclass
class Clients:
    """What clients did and saw. histories: by document."""

    routers: list[Node]
    histories: dict[str, list[Operation]] = field(default_factory=lambda: defaultdict(list))
    counts: Counter[str] = field(default_factory=Counter)
    position: str = ".".join("0" * SHARDS)
    stopped: bool = False

    async def work(self, number: int) -> None:
        """Until it is stopped. number: of the client."""
        async with httpx.AsyncClient(timeout=10) as client:
            steps = 0
            while not self.stopped:
                steps += 1
                id, router = f"id{random.randrange(IDS)}", random.choice(self.routers)
                await self.step(client, router.url, id, f"{number}.{steps}")
                await asyncio.sleep(PAUSE_SECONDS)

    async def step(self, client: httpx.AsyncClient, url: str, id: str, tag: str) -> None:
        documents, begun = f"{url}/collections/{NAME}/documents", time.monotonic()
        kind = random.choices(("put", "delete", "get"), (5, 1, 5))[0]
        try:
            if kind == "put":
                document = {"id": id, "text": f"note {tag}", "metadata": {"tag": tag}}
                answer = await client.put(documents, json={"documents": [document]})
            elif kind == "delete":
                answer = await client.post(f"{documents}/delete", json={"ids": [id]})
            else:  # by the writing server
                options = {"min_position": self.position}
                answer = await client.get(f"{documents}/{id}", params=options)
        except httpx.HTTPError:
            self.counts[f"{kind}: no answer"] += 1
            answer = None
        ended = time.monotonic()
        if answer is not None:
            code = "" if answer.is_success else f" {answer.json()['error']['code']}"
            self.counts[f"{kind}: {answer.status_code}{code}"] += 1
        if kind == "get":
            if answer is not None and answer.status_code in (httpx.codes.OK, httpx.codes.NOT_FOUND):
                seen = answer.json()["metadata"]["tag"] if answer.is_success else None
                self.histories[id].append(Operation("read", seen, begun, ended))
        elif answer is None or answer.is_server_error:
            value = tag if kind == "put" else None
            self.histories[id].append(Operation("write", value, begun, float("inf")))
        elif answer.is_success:
            value = tag if kind == "put" else None
            self.histories[id].append(Operation("write", value, begun, ended))
            self.position = later(self.position, answer.json()["position"])


def later(one: str, other: str) -> str:
    """The position that both are up to."""
    pairs = zip(one.split("."), other.split("."), strict=True)
    return ".".join(str(max(int(a), int(b))) for a, b in pairs)


async def documents_of(url: str) -> dict[str, str]:
    """The tag of each document that a server or router lists."""
    async with httpx.AsyncClient(timeout=60) as client:
        answer = await client.get(f"{url}/collections/{NAME}/documents", params={"limit": 1000})
        answer.raise_for_status()
        return {each["id"]: each["metadata"]["tag"] for each in answer.json()["documents"]}


async def began(
    folder: Path, stack: AsyncExitStack, lease: dict[str, float], *, clocks: bool
) -> tuple[list[Shard], list[Node]]:
    """Shards and routers, with an empty collection; they end with the stack. clocks: of each its own."""
    shards = []
    for number in range(SHARDS):
        own = folder / f"shard{number}"
        disks = [own / "disk1", own / "disk2"]
        for disk in disks:
            disk.mkdir(parents=True)
        writer, follower = (Node(disk, prefix=with_own_clock(disk) if clocks else ()) for disk in disks)
        set_clock(writer)
        set_clock(follower)
        writing, following = FaultProxy(writer.port), FaultProxy(follower.port)
        for node, proxy in ((writer, writing), (follower, following)):
            stack.push_async_callback(node.kill)
            await proxy.open()
        shards.append(Shard(f"file://{own}/store", own, writer, follower, writing, following, lease))
    await asyncio.gather(*(shard.write_at(shard.writer) for shard in shards))
    addresses = ",".join(f"{shard.writing.url}|{shard.following.url}" for shard in shards)
    routers = []
    for number in range(ROUTERS):
        data = folder / f"router{number}"
        data.mkdir()
        routers.append(Node(data, {"shards": addresses}))
        stack.push_async_callback(routers[-1].kill)
        routers[-1].start()
    await asyncio.gather(*(router.ready() for router in routers))
    async with httpx.AsyncClient(timeout=60) as client:
        answer = await client.put(f"{routers[0].url}/collections/{NAME}", json={"token_codec": "int8"})
        answer.raise_for_status()
    await asyncio.gather(*(shard.follow_at(shard.follower) for shard in shards))
    return shards, routers


async def router_killed(router: Node) -> None:
    await router.kill()
    router.start()
    await router.ready()


async def tried(folder: Path, rounds: int, choice: random.Random, *, lease: bool, clocks: bool) -> list[str]:
    """What was wrong."""
    kinds = (*(FAULTS_WITH_LEASE if lease else FAULTS), *([clocks_set] if clocks else []))
    async with AsyncExitStack() as stack:
        signs = {"lease_seconds": LEASE_SECONDS} if lease else {}
        shards, routers = await began(folder, stack, signs, clocks=clocks)
        return await tried_on(shards, routers, rounds, choice, kinds)


async def tried_on(
    shards: list[Shard], routers: list[Node], rounds: int, choice: random.Random, kinds: Sequence[Fault]
) -> list[str]:
    """The same, of servers that run."""
    clients = Clients(routers)
    working = [asyncio.create_task(clients.work(number)) for number in range(CLIENTS)]
    done, wrong = Counter[str](), list[str]()
    for number in range(rounds):
        if number % (len(kinds) + 1) == len(kinds):
            name, router = "router_killed", choice.choice(routers)
            faults = [router_killed(router)]
        else:
            some = choice.sample(shards, choice.choice((1, 1, 2)))
            chosen_faults = [choice.choice(kinds) for _ in some]
            name = "+".join(fault.__name__ for fault in chosen_faults)
            faults = [fault(shard) for fault, shard in zip(chosen_faults, some, strict=True)]
        for failure in await asyncio.gather(*faults, return_exceptions=True):
            if failure is not None:
                wrong.append(f"round {number}, {name}: {failure!r}")
        done.update(name.split("+"))
        print(f"round {number}: {name}, {sum(clients.counts.values()):,} operations", flush=True)
        if wrong:
            break
        await asyncio.sleep(DOWN_SECONDS)
    clients.stopped = True
    await asyncio.gather(*working)
    wrong += [f"{id} has a history that is not linearizable" for id in bad_histories(clients)]
    if not wrong:
        wrong += await differences(shards, routers, clients)
    print(json.dumps({"faults": dict(done), "operations": dict(sorted(clients.counts.items()))}, indent=2))
    return wrong


def bad_histories(clients: Clients) -> list[str]:
    return [id for id, history in sorted(clients.histories.items()) if not is_linearizable(history)]


async def differences(shards: list[Shard], routers: list[Node], clients: Clients) -> list[str]:
    """Documents of the writers must be those of histories; followers and routers must come to the same."""
    found, now = list[str](), time.monotonic()
    written = [await documents_of(shard.writer.url) for shard in shards]
    listed = {id: tag for documents in written for id, tag in documents.items()}
    for id, history in clients.histories.items():
        last = Operation("read", listed.get(id), now, now + 1)
        if not is_linearizable([*history, last]):
            found.append(f"{id} is {last.value} at the end, which no order of its writes explains")
    followers = [(shard.follower.url, documents) for shard, documents in zip(shards, written, strict=True)]
    until = now + CAUGHT_UP_SECONDS
    for url, expected in (*followers, *((router.url, listed) for router in routers)):
        while (there := await documents_of(url)) != expected:
            if time.monotonic() > until:
                found.append(f"{url} has {there}, and not {expected}")
                break
            await asyncio.sleep(0.5)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0, help="of the faults; times differ from run to run")
    parser.add_argument("--lease", action="store_true", help="servers take over by themselves")
    parser.add_argument("--clocks", action="store_true", help="clocks of servers differ, and step")
    given = parser.parse_args()
    if given.clocks and not FAKETIME.exists():
        parser.error(f"--clocks needs {FAKETIME}, of the package libfaketime")
    with tempfile.TemporaryDirectory(prefix="tercet-ledgers-") as folder:
        choice = random.Random(given.seed)
        wrong = asyncio.run(tried(Path(folder), given.rounds, choice, lease=given.lease, clocks=given.clocks))
    print(*wrong, sep="\n")
    return min(len(wrong), 1)


if __name__ == "__main__":
    raise SystemExit(main())
