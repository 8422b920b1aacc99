"""One remote server: calls to it within a time, and what they and its probes tell of it."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

from tercet.service.exceptions import CallFailedError
from tercet.service.remote.circuit import Circuit, CircuitPolicy, Probe
from tercet.service.remote.probes import Probes
from tercet.service.remote.transport import RemoteAnswer, RemoteRequest, Transport
from tercet.service.tracing.request import call


class RemoteServer:
    """A server behind its transport, with its circuit. Use from one event loop."""

    def __init__(self, transport: Transport, policy: CircuitPolicy, probe: Probe, probes: Probes) -> None:
        """probe: asks it whether it can be used; probes: whose loop does so again and again."""
        self.name = transport.name
        self.circuit = Circuit(self.name, policy, self._let_go)
        self._transport = transport
        self._probe = probe
        self._probes = probes
        self._limits: set[asyncio.Timeout] = set()

    @property
    def in_flight(self) -> int:
        """Calls that wait for an answer."""
        return len(self._limits)

    def begin_probes(self) -> None:
        """Has it probed for as long as its circuit needs it."""
        self._probes.begin(self.circuit, self._probe)

    async def probe(self) -> None:
        """Probes it once."""
        await self.circuit.probe(self._probe)

    async def call(self, request: RemoteRequest, seconds: float) -> RemoteAnswer:
        """The answer to a request within a time; its circuit learns of it. Raises CallFailedError."""
        limit, began = asyncio.timeout(seconds), time.monotonic()
        self._limits.add(limit)
        try:
            with call(request.operation, f"{self.name}{request.path.partition('?')[0]}") as trace_headers:
                if trace_headers:
                    request = replace(request, headers={**request.headers, **trace_headers})
                answer = await self._within(limit, request)
        except CallFailedError as error:
            if error.kind == "silent":
                self.circuit.silent(str(error), time.monotonic() - began)
            elif error.counts:
                self.circuit.failed(str(error))
            raise
        finally:
            self._limits.discard(limit)
            self.begin_probes()
        self.circuit.answered()
        return answer

    async def ask(self, request: RemoteRequest, seconds: float) -> RemoteAnswer:
        """The answer to a request within a time, of which nothing is learnt. Raises CallFailedError."""
        return await self._within(asyncio.timeout(seconds), request)

    async def _within(self, limit: asyncio.Timeout, request: RemoteRequest) -> RemoteAnswer:
        began = time.monotonic()
        try:
            async with limit:
                return await self._transport.request(request)
        except TimeoutError:
            raise CallFailedError(
                "silent", f"did not answer within {time.monotonic() - began:.3g} s"
            ) from None

    def _let_go(self) -> None:
        """Ends the wait of all calls."""
        for limit in self._limits:
            if not limit.expired():
                limit.reschedule(asyncio.get_running_loop().time())
