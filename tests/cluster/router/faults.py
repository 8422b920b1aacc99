"""A relay before a server, which can be told to fail as networks and processes do."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal
from urllib.parse import urlsplit

Fault = Literal["none", "closed", "silent", "garbage", "page", "half"]
"""half: what is lost in the middle of a search, when it is asked for hits."""

GARBAGE = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/x-safetensors\r\nContent-Length: 9\r\n\r\n\x07garbage\xff"
)
PAGE = b"HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>"


class Relay:
    """Hands bytes on to the server at a URL and back, or fails: see `Fault`. ends_at: what a request has that
    is to be the last of its connection, and is not handed on.
    """

    def __init__(self, target: str) -> None:
        address = urlsplit(target)
        assert address.hostname is not None
        assert address.port is not None
        self._target = address.hostname, address.port
        self.fault: Fault = "none"
        self.ends_at: bytes | None = None
        self.url = ""
        self.asked = 0

    async def serve(self, writer_ready: threading.Event, stopped: asyncio.Event) -> None:
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        writer_ready.set()
        await stopped.wait()
        server.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            inner_reader, inner_writer = await asyncio.open_connection(*self._target)
        except OSError:
            writer.close()
            return
        back = asyncio.create_task(_pump(inner_reader, writer))
        try:
            while data := await reader.read(2**16):
                self.asked += data.count(b"POST /shard/")
                is_later = b"/hits " in data or b"/parts " in data
                if (
                    self.fault == "closed"
                    or (self.fault == "half" and is_later)
                    or (self.ends_at is not None and self.ends_at in data)
                ):
                    break
                if self.fault in ("none", "half"):
                    inner_writer.write(data)
                elif self.fault != "silent" and b"\r\n\r\n" in data:
                    writer.write(GARBAGE if self.fault == "garbage" else PAGE)
        except ConnectionError:
            pass
        finally:
            back.cancel()
            inner_writer.close()
            writer.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(2**16):
            writer.write(data)
    except ConnectionError:
        pass


@contextmanager
def relay(target: str) -> Iterator[Relay]:
    """A relay before the server at a URL, in a thread of its own."""
    made, ready = Relay(target), threading.Event()
    loop = asyncio.new_event_loop()
    stopped = asyncio.Event()

    def run() -> None:
        loop.run_until_complete(made.serve(ready, stopped))
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert ready.wait(10)
    try:
        yield made
    finally:
        loop.call_soon_threadsafe(stopped.set)
        thread.join(10)
