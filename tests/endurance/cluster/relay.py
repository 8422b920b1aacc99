"""What stands between a router and a shard, and can spoil the answers that pass."""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from random import Random
from typing import Literal

Fault = Literal["none", "slow", "closed", "cut", "garbage", "short", "long", "flipped"]
"""none: answers pass as they are. slow: after `delay_seconds`. closed: connections end as a request comes.
cut: answers end in the middle. garbage: random bytes in their place. short, long: a Content-Length that is
too small, or too large. flipped: one bit of each is another.
"""

_LENGTH = re.compile(rb"content-length: *([0-9]+)", re.IGNORECASE)
HEAD_BYTES = 1 << 20
CHUNK_BYTES = 1 << 16


class Relay:
    """Passes HTTP on to a port, with a fault. faulted: how many answers it spoiled."""

    def __init__(self, port: int) -> None:
        self.fault: Fault = "none"
        self.delay_seconds = 0.0
        self.faulted = 0
        self.port = 0
        self._target = port
        self._random = Random(7)
        self._server: asyncio.Server | None = None

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    async def open(self) -> None:
        """Listens."""
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0, limit=HEAD_BYTES)
        self.port = self._server.sockets[0].getsockname()[1]

    def close(self) -> None:
        """Listens no longer."""
        if self._server is not None:
            self._server.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection(
                "127.0.0.1", self._target, limit=HEAD_BYTES
            )
        except OSError:
            writer.close()
            return
        tasks = [
            asyncio.create_task(self._requests(reader, far_writer)),
            asyncio.create_task(self._answers(far_reader, writer)),
        ]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for each in (writer, far_writer):
            each.close()

    async def _requests(self, reader: asyncio.StreamReader, shard: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while chunk := await reader.read(CHUNK_BYTES):
                if self.fault == "closed":
                    self.faulted += 1
                    return
                shard.write(chunk)
                await shard.drain()

    async def _answers(self, shard: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = await shard.readuntil(b"\r\n\r\n")
                length = _LENGTH.search(head)
                body = b"" if length is None else await shard.readexactly(int(length[1]))
                goes_on = await self._pass(head, body, client)
                await client.drain()
                if not goes_on:
                    return

    async def _pass(self, head: bytes, body: bytes, client: asyncio.StreamWriter) -> bool:
        """Sends an answer on, spoiled by the fault of the moment; whether the connection goes on."""
        fault, whole = self.fault, head + body
        if fault != "none":
            self.faulted += 1
        if fault == "slow":
            await asyncio.sleep(self.delay_seconds)
        if fault == "garbage":
            client.write(self._random.randbytes(self._random.randrange(1, 5000)))
            return False
        if fault == "cut":
            client.write(whole[: self._random.randrange(len(whole))])
            return False
        if fault in ("short", "long"):
            other = len(body) // 2 if fault == "short" else len(body) + 100
            client.write(_LENGTH.sub(b"content-length: %d" % other, head) + body)
            return True
        if fault == "flipped":
            changed = bytearray(whole)
            changed[self._random.randrange(len(whole))] ^= 1 << self._random.randrange(8)
            whole = bytes(changed)
        client.write(whole)
        return True
