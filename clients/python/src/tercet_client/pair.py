"""Both clients of one server, for code that is called with and without an event loop."""

from __future__ import annotations

import asyncio
import weakref
from functools import cached_property

from tercet_client.async_client import AsyncClient
from tercet_client.client import Client
from tercet_client.connection import DEFAULT_URL


class ClientPair:
    """A client for threads, and one for each event loop, made when they are first used.

    An asynchronous client belongs to the loop that it was first used in, and programs may run several, one
    after the other.
    """

    def __init__(self, url: str = DEFAULT_URL, *, key: str | None = None, timeout: float = 60.0) -> None:
        """As for Client."""
        self._url, self._key, self._timeout = url, key, timeout
        self._of_loops: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncClient] = (
            weakref.WeakKeyDictionary()
        )

    @cached_property
    def sync(self) -> Client:
        """For calls outside an event loop; closed with the pair, or when nothing refers to it any more."""
        client = Client(self._url, key=self._key, timeout=self._timeout)
        weakref.finalize(self, client.close)
        return client

    @property
    def running(self) -> AsyncClient:
        """Of the running event loop. Raises RuntimeError where there is none."""
        loop = asyncio.get_running_loop()
        if loop not in self._of_loops:
            self._of_loops[loop] = AsyncClient(self._url, key=self._key, timeout=self._timeout)
        return self._of_loops[loop]

    def close(self) -> None:
        """Closes the connections of `sync`."""
        self.sync.close()

    async def close_async(self) -> None:
        """Closes the connections of the running loop's client."""
        found = self._of_loops.pop(asyncio.get_running_loop(), None)
        if found is not None:
            await found.close()
