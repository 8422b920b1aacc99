"""Answers of any size, sent as they are made: in memory for one chunk, and with turns for other requests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass

from fastapi import Response

from tercet.service.errors import INTERNAL, failure_of
from tercet.service.exceptions import BrokenAnswerError
from tercet.service.http.asgi import Receive, Scope, Send

CHUNK_BYTES = 2**16
JSON = "application/json"


async def response_of(
    pieces: AsyncGenerator[bytes],
    media_type: str = JSON,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """An answer of these pieces: one with its length where they are less than a chunk, else a stream.

    Raises what is raised before the first chunk is full; an error after that breaks the answer off.
    """
    made, size = [], 0
    async for piece in pieces:
        made.append(piece)
        size += len(piece)
        if size >= CHUNK_BYTES:
            await asyncio.sleep(0)
            return _Stream(b"".join(made), _chunks(pieces), media_type, headers)
    return Response(b"".join(made), headers=headers, media_type=media_type)


@dataclass(frozen=True, slots=True)
class BegunAnswer:
    """A JSON answer whose first chunk was made in a thread; the rest, if any, is made as it is sent."""

    first: bytes
    rest: Iterator[bytes] | None

    @staticmethod
    def of(pieces: Iterator[bytes]) -> BegunAnswer:
        """Makes the first chunk, and with it all of most answers."""
        made, size = [], 0
        for piece in pieces:
            made.append(piece)
            size += len(piece)
            if size >= CHUNK_BYTES:
                return BegunAnswer(b"".join(made), pieces)
        return BegunAnswer(b"".join(made), None)

    def response(self) -> Response:
        """The answer, as `response_of` gives it."""
        if self.rest is None:
            return Response(self.first, media_type=JSON)
        return _Stream(self.first, _chunks(_later(self.rest)), JSON, None)


async def _later(pieces: Iterator[bytes]) -> AsyncGenerator[bytes]:
    for piece in pieces:
        yield piece


class _Stream(Response):
    """Sends chunks when the client has taken those before."""

    def __init__(
        self,
        first: bytes,
        chunks: AsyncGenerator[bytes],
        media_type: str,
        headers: Mapping[str, str] | None,
    ) -> None:
        super().__init__(headers=headers, media_type=media_type)
        del self.headers["content-length"]
        self._first = first
        self._chunks = chunks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Raises BrokenAnswerError where the rest cannot be made."""
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        async with aclosing(self._chunks) as chunks:
            first, self._first = self._first, b""
            await send({"type": "http.response.body", "body": first, "more_body": True})
            del first
            try:
                async for chunk in chunks:
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
            except Exception as error:
                if failure_of(error) is INTERNAL:
                    raise
                raise BrokenAnswerError(f"an answer was broken off: {error}") from error
        await send({"type": "http.response.body", "body": b""})


async def _chunks(pieces: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    """The pieces joined; after each chunk the event loop may turn to others."""
    waiting: list[bytes] = []
    size = 0
    async with aclosing(pieces):
        async for piece in pieces:
            waiting.append(piece)
            size += len(piece)
            if size >= CHUNK_BYTES:
                yield b"".join(waiting)
                waiting, size = [], 0
                await asyncio.sleep(0)
    if waiting:
        yield b"".join(waiting)
