"""What stands between a search server and an encoder worker, and can break what passes."""

from __future__ import annotations

import asyncio
import socket
import struct
from contextlib import suppress

RESET = struct.pack("ii", 1, 0)  # closing discards what was sent and resets the connection
FAILED = b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"
EMBED = b"POST /embed"
CHUNK_BYTES = 1 << 16


class FaultProxy:
    """Passes the bytes of TCP connections on, but for the faults that are set.

    resets: how many of the next requests to `/embed` end in a reset. marker: requests whose body has it are
    answered 500. `passing`: while it is cleared, nothing passes in either direction and no connection ends.
    """

    def __init__(self, target_port: int) -> None:
        self.resets = 0
        self.marker: bytes | None = None
        self.passing = asyncio.Event()
        self.passing.set()
        self.port = 0
        self._target_port = target_port
        self._writers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    async def open(self) -> None:
        """Listens, again at the same address where it was closed."""
        self._server = await asyncio.start_server(self._connect, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    def lead_to(self, port: int) -> None:
        """Leads to another server from now on; connections that there are end."""
        self._target_port = port
        self._reset_all()

    def close(self) -> None:
        """Refuses connections and resets those that there are."""
        if self._server is not None:
            self._server.close()
        self._reset_all()

    def _reset_all(self) -> None:
        for writer in self._writers:
            _reset(writer)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            await self.passing.wait()
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target_port)
        except OSError:
            _reset(writer)
            return
        finally:
            self._writers.discard(writer)
        self._writers |= {writer, far_writer}
        try:
            await asyncio.wait(
                [
                    asyncio.create_task(self._requests(reader, far_writer, writer)),
                    asyncio.create_task(self._forward(far_reader, writer)),
                ],
                return_when=asyncio.FIRST_COMPLETED,
            )
        finally:
            for each in (writer, far_writer):
                self._writers.discard(each)
                each.close()

    async def _requests(
        self, reader: asyncio.StreamReader, worker: asyncio.StreamWriter, client: asyncio.StreamWriter
    ) -> None:
        with suppress(ConnectionError):
            while chunk := await reader.read(CHUNK_BYTES):
                await self.passing.wait()
                if self.resets and chunk.startswith(EMBED):
                    self.resets -= 1
                    _reset(client)
                    return
                if self.marker is not None and self.marker in chunk:
                    client.write(FAILED)
                    await client.drain()
                    return
                worker.write(chunk)
                await worker.drain()

    async def _forward(self, reader: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while chunk := await reader.read(CHUNK_BYTES):
                await self.passing.wait()
                client.write(chunk)
                await client.drain()


def _reset(writer: asyncio.StreamWriter) -> None:
    """Ends a connection at once, with a reset."""
    with suppress(OSError):
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    writer.transport.abort()
