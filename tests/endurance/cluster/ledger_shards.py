"""A shard with a `--ledger-url`: its servers, the store that both use, and faults that they must survive."""

from __future__ import annotations

import asyncio
import platform
import random
import shutil
import signal
import sys
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path

import httpx

from benchmarks.serving.server import environment
from tests.endurance.cluster.nodes import Node
from tests.endurance.serving.fault_proxy import FaultProxy

NAME = "notes"
DOWN_SECONDS, LOST_SECONDS = 1.5, 2.0
PUBLISH_SECONDS, FOLLOW_SECONDS = 2, 1
TAKE_OVER_SECONDS = 120.0
REPLACED = "writer_replaced"
FAKETIME = Path(f"/usr/lib/{platform.machine()}-linux-gnu/faketime/libfaketime.so.1")
OFF_SECONDS = 3 * 86_400  # at most, of a clock


@dataclass
class Shard:
    """The writing server and the one that follows it, whose roles change. Routers reach them by addresses
    that stay: `writing` and `following`.
    """

    url: str
    folder: Path
    writer: Node
    follower: Node
    writing: FaultProxy
    following: FaultProxy
    lease: dict[str, float]
    disks: int = 2

    def new_disk(self) -> Path:
        self.disks += 1
        disk = self.folder / f"disk{self.disks}"
        disk.mkdir()
        return disk

    def wipe(self, node: Node) -> None:
        shutil.rmtree(node.data)
        node.data.mkdir()

    async def write_at(self, node: Node) -> None:
        """Starts a node as the writer, to which the address leads from now on."""
        node.settings = {"ledger_url": self.url, "publish_seconds": PUBLISH_SECONDS, **self.lease}
        node.start()
        await node.ready()
        self.writer = node
        self.writing.lead_to(node.port)

    async def follow_at(self, node: Node) -> None:
        settings: dict[str, str | int | float] = {"follow": self.url, "follow_seconds": FOLLOW_SECONDS}
        if self.lease:  # it stands by
            settings |= {"ledger_url": self.url, "publish_seconds": PUBLISH_SECONDS, **self.lease}
        node.settings = settings
        node.start()
        await node.ready()
        self.follower = node
        self.following.lead_to(node.port)

    async def follow_anew_at(self, node: Node) -> None:
        """Ends a node, and has it follow with an empty disk."""
        await node.kill()
        self.wipe(node)
        await self.follow_at(node)

    async def taken_over(self) -> Node:
        """Waits until the server that followed writes; returns the former writer. Raises TimeoutError."""
        former, new = self.writer, self.follower
        async with asyncio.timeout(TAKE_OVER_SECONDS), httpx.AsyncClient(timeout=5) as client:
            while True:
                if await writes(client, new.url):
                    break
                await asyncio.sleep(0.1)
        self.writer, self.writing, self.following = new, self.following, self.writing
        return former

    async def promote(self, data: Path) -> None:
        """Raises RuntimeError where the command fails."""
        command = [sys.executable, "-m", "tercet.cli.main", "collection", "promote", NAME]
        process = await asyncio.create_subprocess_exec(
            *command,
            *("--ledger-url", self.url, "--data", str(data)),
            env=environment({}),
            stderr=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
        )
        _, errors = await process.communicate()
        if process.returncode:
            raise RuntimeError(f"promote: {errors.decode()}")


async def killed(shard: Shard) -> None:
    """It comes back with its disk."""
    await shard.writer.kill()
    await asyncio.sleep(random.random() * DOWN_SECONDS)
    await shard.write_at(shard.writer)


async def terminated(shard: Shard) -> None:
    """It ends in order, and comes back."""
    shard.writer.signal(signal.SIGTERM)
    await shard.writer.ended()
    await shard.write_at(shard.writer)


async def wiped(shard: Shard) -> None:
    """Its disk is lost; the same machine is promoted with an empty one."""
    await shard.writer.kill()
    shard.wipe(shard.writer)
    await shard.promote(shard.writer.data)
    await shard.write_at(shard.writer)


async def replaced(shard: Shard) -> None:
    """The server that followed writes from now on, and the former writer follows with an empty disk."""
    await shard.writer.kill()
    await shard.follower.kill()
    former, new = shard.writer, shard.follower
    await shard.promote(new.data)
    await shard.write_at(new)
    await shard.follow_anew_at(former)


async def paused(shard: Shard) -> None:
    """It is replaced while it is paused, and wakes up as who it was: its writes are refused."""
    shard.writer.signal(signal.SIGSTOP)
    await shard.follower.kill()
    former, new = shard.writer, shard.follower
    await shard.promote(new.data)
    await shard.write_at(new)
    former.signal(signal.SIGCONT)
    await require_refused(former)
    await shard.follow_anew_at(former)


async def came_back(shard: Shard) -> None:
    """The former writer starts with its old disk after it was replaced, and is promoted in its turn."""
    await shard.writer.kill()
    await shard.follower.kill()
    former, new = shard.writer, shard.follower
    await shard.promote(new.data)
    await shard.write_at(new)
    former.start()
    await former.ready()
    await require_refused(former)
    await former.kill()
    await shard.writer.kill()
    await shard.promote(former.data)
    await shard.write_at(former)
    await shard.follow_anew_at(new)


async def copied(shard: Shard) -> None:
    """A copy of its disk is published from as well: one of the two is the writer, and it is the one that the
    address leads to, or becomes it by a promotion.
    """
    await shard.writer.kill()
    copy = Node(shard.new_disk(), shard.writer.settings, prefix=shard.writer.prefix)
    shutil.copytree(shard.writer.data, copy.data, dirs_exist_ok=True)
    copy.start()
    await copy.ready()
    await shard.write_at(shard.writer)
    await copy.kill()
    shutil.rmtree(copy.data)


async def lost(shard: Shard) -> None:
    """Messages are on their way for a while, and then lost."""
    shard.writing.passing.clear()
    await asyncio.sleep(random.random() * LOST_SECONDS)
    shard.writing.lead_to(shard.writer.port)
    shard.writing.passing.set()


async def lost_follower(shard: Shard) -> None:
    """The server that follows loses its disk."""
    await shard.follow_anew_at(shard.follower)


async def clocks_set(shard: Shard) -> None:
    """The clocks of both servers step to other times."""
    set_clock(shard.writer)
    set_clock(shard.follower)


async def abandoned(shard: Shard) -> None:
    """Its disk is lost, and the server that follows takes over."""
    await shard.writer.kill()
    former = await shard.taken_over()
    await shard.follow_anew_at(former)


async def slept(shard: Shard) -> None:
    """It sleeps until the server that follows has taken over, and wakes up as who it was."""
    shard.writer.signal(signal.SIGSTOP)
    former = await shard.taken_over()
    former.signal(signal.SIGCONT)
    await require_refused(former)
    await shard.follow_anew_at(former)


Fault = Callable[[Shard], Coroutine[object, object, None]]
FAULTS = (killed, terminated, wiped, replaced, paused, came_back, copied, lost, lost_follower)
FAULTS_WITH_LEASE = (abandoned, slept, lost, lost_follower)


def clock_of(data: Path) -> Path:
    """The file that says how far the clock of a server with this disk is off."""
    return data.with_name(f"{data.name}.clock")


def set_clock(node: Node) -> None:
    clock = clock_of(node.data)
    if clock.exists():
        clock.write_text(f"{random.uniform(-OFF_SECONDS, OFF_SECONDS):+.3f}")


def with_own_clock(data: Path) -> tuple[str, ...]:
    """The command before a server's, which lets its clock differ from the machine's. Times of files are the
    machine's, as those of a store or a file system elsewhere would be.
    """
    clock_of(data).write_text("+0")
    variables = {
        "LD_PRELOAD": FAKETIME,
        "FAKETIME_TIMESTAMP_FILE": clock_of(data),
        "FAKETIME_DONT_FAKE_MONOTONIC": 1,
        "FAKETIME_CACHE_DURATION": 1,
        "NO_FAKE_STAT": 1,
    }
    return ("env", *(f"{name}={value}" for name, value in variables.items()))


async def writes(client: httpx.AsyncClient, url: str) -> bool:
    """Whether a server says that it writes."""
    try:
        return bool((await client.get(f"{url}/ready")).json().get("writes") == "ready")
    except (httpx.HTTPError, ValueError):
        return False


async def require_refused(node: Node) -> None:
    """Raises RuntimeError where a former writer takes a write."""
    document = {"id": "id0", "text": "of a former writer", "metadata": {"tag": "former"}}
    async with httpx.AsyncClient(timeout=60) as client:
        answer = await client.put(f"{node.url}/collections/{NAME}/documents", json={"documents": [document]})
    if answer.status_code != httpx.codes.CONFLICT or answer.json()["error"]["code"] != REPLACED:
        raise RuntimeError(f"a former writer answers {answer.status_code}: {answer.text}")
