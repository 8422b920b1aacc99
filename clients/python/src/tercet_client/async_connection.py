"""The connection to a server of the asynchronous client. `connection.py` is made from it by
`clients/python/make_sync.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from types import TracebackType
from typing import Any, Self

import httpx

from tercet_client.errors import ConnectionFailedError, error_of
from tercet_client.parts import address_of
from tercet_client.retries import pause_before

DEFAULT_URL = "http://127.0.0.1:8080"


class AsyncConnection:
    """Sends requests to a server; again where it is busy, or away and a repeat does no harm."""

    def __init__(
        self,
        url: str = DEFAULT_URL,
        *,
        key: str | None = None,
        timeout: float = 60.0,
        retries: int = 8,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """key: where the server needs one; timeout: seconds of one attempt; retries: repeats at most.

        Raises ValueError where the url does not begin with http:// or https://.
        """
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        self._retries = retries
        self._http = httpx.AsyncClient(
            base_url=address_of(url), headers=headers, timeout=timeout, transport=transport
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes all connections."""
        await self._http.aclose()

    async def _pages(
        self, path: str, items: str, page: int, params: Mapping[str, str] | None = None
    ) -> AsyncIterator[Any]:
        """What a list holds, in requests of `page` items. items: the key of an answer that has them."""
        parameters = {**(params or {}), "limit": str(page)}
        while True:
            answer = await self._json("GET", path, params=parameters)
            for item in answer[items]:
                yield item
            if answer["next"] is None:
                return
            parameters["after"] = answer["next"]

    async def _json(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        params: Mapping[str, str] | None = None,
        again: bool = True,
    ) -> Any:
        return (await self._send(method, path, json=body, params=params, again=again)).json()

    async def _send(
        self,
        method: str,
        path: str,
        *,
        json: object = None,
        content: bytes | None = None,
        params: Mapping[str, str | list[str]] | None = None,
        headers: Mapping[str, str] | None = None,
        again: bool = True,
    ) -> httpx.Response:
        """The answer. again: a repeat does no harm where nobody knows whether the request arrived."""
        attempt = 0
        while True:
            attempt += 1
            answer: httpx.Response | None = None
            try:
                answer = await self._http.request(
                    method, path, json=json, content=content, params=params, headers=headers
                )
            except httpx.HTTPError as error:
                if not again or attempt > self._retries:
                    raise ConnectionFailedError(
                        f"{self._http.base_url} does not answer: {error or type(error).__name__}"
                    ) from error
            if answer is not None and answer.is_success:
                return answer
            pause = pause_before(attempt, answer)
            if answer is not None and (pause is None or attempt > self._retries):
                raise error_of(answer)
            await asyncio.sleep(pause or 0.0)
