"""Remote servers over HTTP/1.1, by aiohttp: a tenth of the processor time that httpx takes for a call."""

from __future__ import annotations

import io
import math

import aiohttp
from yarl import URL

from tercet.index.wording import reason_of
from tercet.service.exceptions import CallFailedError
from tercet.service.remote.probes import Probes
from tercet.service.remote.transport import RemoteAnswer, RemoteRequest

KEPT_SECONDS = 30  # an idle connection: less than the 75 s after which a server closes it
NAMES_SECONDS = 10  # an address that was looked up: one that moves is found again
LARGE_BYTES = 2**20  # a larger body is sent in pieces, so that the event loop has its turn between them

# What ends a connection before its answer came, such as one that the server closed while it was kept alive.
BROKEN = (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError, aiohttp.ClientPayloadError)


class HttpConnections:
    """The connections to several servers, and their probes. Opened at the first use, in the event loop
    that they are used from.
    """

    def __init__(self, key: str | None = None, answer_bytes: float = math.inf) -> None:
        """key: sent with every request; answer_bytes: the largest answer."""
        self.answer_bytes = answer_bytes
        self.probes = Probes()
        self._key = key
        self._session: aiohttp.ClientSession | None = None

    def opened(self) -> aiohttp.ClientSession:
        """The session of the running event loop."""
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    limit=0, keepalive_timeout=KEPT_SECONDS, ttl_dns_cache=NAMES_SECONDS
                ),
                headers={
                    "Accept-Encoding": "identity",
                    **({} if self._key is None else {"Authorization": f"Bearer {self._key}"}),
                },
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(),  # each request is bounded as a whole
                auto_decompress=False,
                trust_env=False,
            )
        return self._session

    async def close(self) -> None:
        """Ends all probes and connections."""
        await self.probes.end()
        if self._session is not None:
            await self._session.close()


class HttpTransport:
    """The way to the server at a URL. Use from one event loop."""

    def __init__(self, url: str, connections: HttpConnections) -> None:
        """url: without a slash at its end."""
        self.name = url
        self._connections = connections

    async def request(self, request: RemoteRequest) -> RemoteAnswer:
        """See `Transport`; a request that is repeatable is sent once more where a connection broke."""
        try:
            return await self._sent(request)
        except CallFailedError as error:
            if error.kind != "broken" or not request.repeatable:
                raise
        return await self._sent(request)

    async def _sent(self, request: RemoteRequest) -> RemoteAnswer:
        body = request.body
        data = io.BytesIO(body) if len(body) > LARGE_BYTES else body or None
        try:
            url = URL(self.name + request.path, encoded=True)
            async with self._connections.opened().request(
                request.method, url, headers=request.headers, data=data, allow_redirects=False
            ) as response:
                headers = {name.lower(): value for name, value in response.headers.items()}
                return RemoteAnswer(response.status, headers, await self._body(response))
        except aiohttp.ClientConnectorError as error:
            raise CallFailedError("unreachable", f"cannot be reached: {error.os_error}") from None
        except BROKEN as error:
            raise CallFailedError("broken", f"ended the connection: {_reason(error)}") from None
        except (aiohttp.ClientError, ValueError) as error:
            raise CallFailedError("garbage", f"gave no HTTP answer: {_reason(error)}") from None

    async def _body(self, response: aiohttp.ClientResponse) -> bytes:
        """All of an answer's body. Raises CallFailedError for more than an answer may have."""
        most = self._connections.answer_bytes
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
            raise CallFailedError("large", f"answers with more than {most} bytes; ask for less at a time")
        return b"".join(parts)


def _reason(error: Exception) -> str:
    return reason_of(error)
