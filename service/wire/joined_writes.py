"""What is written in one turn of the event loop, sent together.

The head of an answer and its body come one after the other. As two packets they take two calls of the system,
and wake their client twice: a tenth of the server's time for a short query.
"""

from __future__ import annotations

import asyncio
from typing import Any

MOST_BYTES = 1 << 16  # that are joined: to copy a large body costs more than a second packet


class JoinedWrites:
    """A transport that keeps what is written for what is written next, or until the loop's next turn."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._kept = b""

    def __getattr__(self, name: str) -> Any:
        """Any other attribute of the transport."""
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Sends what was kept and this, or keeps this where nothing was and it is small."""
        if len(data) > MOST_BYTES:
            self._send_kept()
            self._transport.write(data)
        elif self._kept and data:
            kept, self._kept = self._kept, b""
            self._transport.write(kept + data)
        elif data:
            self._kept = data
            self._loop.call_soon(self._send_kept)

    def close(self) -> None:
        """Closes once all is sent."""
        self._send_kept()
        self._transport.close()

    def get_write_buffer_size(self) -> int:
        """Bytes that the system has not taken."""
        return len(self._kept) + self._transport.get_write_buffer_size()

    def _send_kept(self) -> None:
        if self._kept:
            kept, self._kept = self._kept, b""
            self._transport.write(kept)
