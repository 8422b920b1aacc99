"""Ends connections whose clients take nothing of an answer."""

from __future__ import annotations

import asyncio

PROGRESS_BYTES = 16 * 1024  # what a client must take each time


class WriteProgress:
    """The answers of one connection on their way to its client."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop, seconds: float) -> None:
        """seconds: for each next part of an answer."""
        self._transport = transport
        self._loop = loop
        self._seconds = seconds
        self._untaken_bytes = 0  # of what was written, when the deadline was set
        self._deadline: asyncio.TimerHandle | None = None

    @property
    def is_expected(self) -> bool:
        """Whether the client has to go on."""
        return self._deadline is not None

    def expect(self) -> None:
        """From now on the client has to take something."""
        self._untaken_bytes = self._transport.get_write_buffer_size()
        self._deadline = self._loop.call_later(self._seconds, self._look)

    def cancel(self) -> None:
        """All was taken that had to be."""
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _look(self) -> None:
        taken_bytes = self._untaken_bytes - self._transport.get_write_buffer_size()
        if taken_bytes < min(PROGRESS_BYTES, self._untaken_bytes):
            self._transport.abort()
        else:
            self.expect()
