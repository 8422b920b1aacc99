"""Writes of one turn of the loop are one packet, and nothing is lost or late."""

import asyncio

from tercet.service.wire.joined_writes import MOST_BYTES, JoinedWrites


class Transport(asyncio.Transport):
    """Remembers what was written, and that it was closed."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written.append(bytes(data))

    def close(self) -> None:
        self.written.append(b"closed")

    def get_write_buffer_size(self) -> int:
        return 5


async def test_a_head_leaves_with_its_body() -> None:
    transport = Transport()
    joined = JoinedWrites(transport, asyncio.get_running_loop())
    joined.write(b"head ")
    assert transport.written == []
    assert joined.get_write_buffer_size() == 10
    joined.write(b"body")
    assert transport.written == [b"head body"]
    await asyncio.sleep(0)
    assert transport.written == [b"head body"]


async def test_what_stands_alone_leaves_in_the_next_turn() -> None:
    transport = Transport()
    joined = JoinedWrites(transport, asyncio.get_running_loop())
    joined.write(b"head")
    joined.write(b"")
    await asyncio.sleep(0)
    assert transport.written == [b"head"]


async def test_closing_comes_after_what_was_kept() -> None:
    transport = Transport()
    joined = JoinedWrites(transport, asyncio.get_running_loop())
    joined.write(b"refusal")
    joined.close()
    assert transport.written == [b"refusal", b"closed"]


async def test_a_large_body_is_not_copied() -> None:
    transport = Transport()
    joined = JoinedWrites(transport, asyncio.get_running_loop())
    body = b"x" * (MOST_BYTES + 1)
    joined.write(b"head")
    joined.write(body)
    assert transport.written == [b"head", body]
    assert joined.get_write_buffer_size() == 5
