"""Shards over HTTP/1.1, by aiohttp: a third of the processor time that httpx takes for a request."""

from __future__ import annotations

import asyncio
import io
from contextlib import suppress
from dataclasses import replace

import aiohttp
from yarl import URL

from tercet.cluster.shards.circuit import Circuit
from tercet.cluster.shards.transport import ShardAccess, ShardAnswer, ShardRequest
from tercet.cluster.shards.watching import LOOK_SECONDS, LOOKED_AT, Watches
from tercet.service.exceptions import ShardFailedError, ShardTimeoutError, ShardUnavailableError
from tercet.service.load.admission import too_late
from tercet.service.tracing.request import call

KEPT_SECONDS = 30  # an idle connection: less than the 75 s after which a shard closes it
NAMES_SECONDS = 10  # an address that was looked up: one that moves is found again
LARGE_BYTES = 2**20  # a larger body is sent in pieces, so that the event loop has its turn between them

SHARE_OF_SHARD = 0.95  # of the time that is left, so that a shard's own refusal comes before its end

# What ends a connection before its answer came, such as one that the shard closed while it was kept alive.
BROKEN = (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError, aiohttp.ClientPayloadError)


class HttpSession:
    """The connections to all shards. Opened at the first use, in the event loop that it is used from."""

    def __init__(self, access: ShardAccess) -> None:
        self.access = access
        self._session: aiohttp.ClientSession | None = None
        self.watches = Watches()

    def opened(self) -> aiohttp.ClientSession:
        """The session of the running event loop."""
        if self._session is None:
            key = self.access.key
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    limit=0, keepalive_timeout=KEPT_SECONDS, ttl_dns_cache=NAMES_SECONDS
                ),
                headers={
                    "Accept-Encoding": "identity",
                    **({} if key is None else {"Authorization": f"Bearer {key}"}),
                },
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(),  # each request is bounded as a whole
                auto_decompress=False,
                trust_env=False,
            )
        return self._session

    async def close(self) -> None:
        """Ends all connections."""
        await self.watches.end()
        if self._session is not None:
            await self._session.close()


class HttpTransport:
    """The way to the shard at a URL. Use from one event loop."""

    def __init__(self, url: str, session: HttpSession) -> None:
        """url: without a slash at its end."""
        self.name = url
        self.circuit = Circuit(url)
        self._session = session

    async def request(self, request: ShardRequest) -> ShardAnswer:
        """Its answer: see `Transport`."""
        left_seconds = self._session.access.left_seconds(request.deadline)
        if left_seconds <= 0:
            raise too_late(0)
        self.circuit.require()
        try:
            return await self._asked(request, left_seconds)
        finally:
            self._session.watches.begin(self.circuit, self._is_there)

    async def _asked(self, request: ShardRequest, left_seconds: float) -> ShardAnswer:
        """The same, within so much time."""
        sent = {**request.headers, "X-Request-Timeout": f"{SHARE_OF_SHARD * left_seconds:.3f}"}
        try:
            with call(request.operation, self.name) as trace_headers:
                async with asyncio.timeout(left_seconds):
                    answer = await self._patiently(replace(request, headers=sent | trace_headers))
        except TimeoutError:
            fault = f"shard {self.name} did not answer within {left_seconds:.3g} s"
            self.circuit.silent(fault, left_seconds)
            raise ShardTimeoutError(fault, self.name) from None
        except aiohttp.ClientConnectorError as error:
            raise self._unavailable(f"cannot be reached: {error.os_error}", sent=False) from None
        except BROKEN as error:
            raise self._unavailable(f"ended the connection: {_reason(error)}", sent=True) from None
        except (aiohttp.ClientError, ValueError) as error:
            self.circuit.failed(_reason(error))
            raise ShardFailedError(
                f"shard {self.name} gave no HTTP answer: {_reason(error)}", self.name
            ) from None
        self.circuit.answered()
        return answer

    async def _patiently(self, request: ShardRequest) -> ShardAnswer:
        """Asked once more where a connection broke, and that is allowed."""
        try:
            return await self._sent(request)
        except aiohttp.ClientConnectorError:
            raise
        except BROKEN:
            if not request.repeatable:
                raise
            return await self._sent(request)

    async def _sent(self, request: ShardRequest) -> ShardAnswer:
        url = URL(self.name + request.path, encoded=True)
        body = request.body
        data = io.BytesIO(body) if len(body) > LARGE_BYTES else body or None
        async with self._session.opened().request(
            request.method, url, headers=request.headers, data=data, allow_redirects=False
        ) as response:
            found = {name.lower(): value for name, value in response.headers.items()}
            return ShardAnswer(response.status, found, await self._body(response))

    async def _body(self, response: aiohttp.ClientResponse) -> bytes:
        """All of it. Raises ShardFailedError for more than an answer may have."""
        most = self._session.access.answer_bytes
        if response.content_length is not None and response.content_length <= most:
            return await response.read()
        parts: list[bytes] = []
        size = response.content_length or 0
        if size <= most:
            size = 0
            async for part in response.content.iter_any():
                parts.append(part)
                size += len(part)
                if size > most:
                    break
        if size > most:
            response.close()
            raise ShardFailedError(
                f"shard {self.name} answers with more than {most} bytes; ask for less at a time", self.name
            )
        return b"".join(parts)

    async def _is_there(self) -> bool:
        with suppress(TimeoutError, aiohttp.ClientError, ValueError, ShardFailedError):
            async with asyncio.timeout(LOOK_SECONDS):
                await self._sent(ShardRequest("GET", LOOKED_AT))
            return True
        return False

    def _unavailable(self, fault: str, *, sent: bool) -> ShardUnavailableError:
        message = f"shard {self.name} {fault}"
        self.circuit.failed(message)
        return ShardUnavailableError(message, self.name, sent=sent)


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__
