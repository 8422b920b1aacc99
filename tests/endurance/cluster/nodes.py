"""Servers in processes of their own, which can be stopped, killed and started again at the same address."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from benchmarks.serving.server import START_SECONDS, environment, free_port
from tercet.models.checkpoint import ENGLISH

END_SECONDS = 60.0
LOOK_SECONDS = 0.05


@dataclass(slots=True)
class Node:
    """A `tercet serve` over a data root, which must be there. settings: by name, without the prefix; prefix:
    the command that runs it, such as one that enters a network namespace.
    """

    data: Path
    settings: Mapping[str, str | int | float] = field(default_factory=dict)
    host: str = "127.0.0.1"
    prefix: Sequence[str] = ()
    port: int = field(default_factory=free_port)
    _process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://{self.host}:{self.port}"

    def start(self) -> None:
        """Begins to run it."""
        settings = {"checkpoint": ENGLISH, "host": self.host, "port": self.port, "data": self.data}
        variables = {
            f"TERCET_{name.upper()}": str(value) for name, value in {**settings, **self.settings}.items()
        }
        with (self.data / "server.log").open("ab") as log:  # the process has it open by itself
            self._process = subprocess.Popen(
                [*self.prefix, sys.executable, "-m", "tercet.cli.main", "serve"],
                env=environment(variables),
                cwd=self.data,
                stdout=subprocess.DEVNULL,
                stderr=log,
            )

    async def ready(self) -> float:
        """Waits until it is; the seconds that took. Raises TimeoutError."""
        began = time.monotonic()
        async with httpx.AsyncClient(timeout=5) as client:
            while not await is_ready(client, self.url):
                if time.monotonic() > began + START_SECONDS:
                    raise TimeoutError(f"{self.url} was not ready within {START_SECONDS:g} s")
                await asyncio.sleep(LOOK_SECONDS)
        return time.monotonic() - began

    def signal(self, number: signal.Signals) -> None:
        """Sends the process a signal."""
        if self._process is not None:
            os.kill(self._process.pid, number)

    async def ended(self) -> None:
        """Waits for its end. Raises TimeoutError."""
        if self._process is not None:
            await asyncio.to_thread(self._process.wait, END_SECONDS)
            self._process = None

    async def kill(self) -> None:
        """Ends it at once."""
        if self._process is not None:
            self._process.kill()
            await self.ended()


async def is_ready(client: httpx.AsyncClient, url: str) -> bool:
    """Whether `/ready` answers 200."""
    try:
        return (await client.get(f"{url}/ready")).status_code == httpx.codes.OK
    except httpx.HTTPError:
        return False
