"""Answers compressed for clients that take them so."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware.gzip import DEFAULT_EXCLUDED_CONTENT_TYPES

from tercet.service.answers.binary import MEDIA_TYPE
from tercet.service.http.asgi import Message
from tercet.service.http.codings import CODINGS, Encoder, encoder_of
from tercet.service.http.negotiation import IDENTITY, preferred_encoding, refuses_identity
from tercet.service.load.pools import Pool

MIN_BYTES = 1024  # a smaller answer is one packet either way
LOOP_BYTES = 1 << 15  # encoded on the event loop, for less than half a millisecond
# Float vectors shrink by a twelfth, which takes longer than sending that at a gigabit.
NO_TRANSFORM = "no-transform"
EXCLUDED = frozenset((*DEFAULT_EXCLUDED_CONTENT_TYPES, MEDIA_TYPE))


class AnswerCoding:
    """How the answer to one request is encoded: whole answers of some size, and streams piece by piece."""

    def __init__(self, accepted: Sequence[str], pool: Pool) -> None:
        """accepted: the values of its `Accept-Encoding` headers; pool: where large pieces are encoded."""
        self._coding, self._strict = _preferred(tuple(accepted))
        self._pool = pool
        self._encoder: Encoder | None = None

    async def begin(self, start: Message, body: bytes, *, more: bool) -> bytes:
        """The first piece of the body, encoded where that is worth it, with the headers that say so.

        start: the message that begins the answer; its headers are changed.
        """
        if not more and len(body) < (1 if self._strict else MIN_BYTES):
            return body
        headers = MutableHeaders(raw=start["headers"])
        if _is_final(start["status"], headers) or (
            not self._strict and NO_TRANSFORM in headers.get("cache-control", "")
        ):
            return body
        headers.add_vary_header("Accept-Encoding")
        if self._coding != IDENTITY:
            self._encoder = encoder_of(self._coding)
            body = await self.go_on(body, more=more)
            headers["Content-Encoding"] = self._coding
            if more:
                del headers["Content-Length"]
            else:
                headers["Content-Length"] = str(len(body))
        start["headers"] = headers.raw
        return body

    async def go_on(self, body: bytes, *, more: bool) -> bytes:
        """The next piece, encoded as the first one was; empty where the encoder waits for more."""
        if self._encoder is None:
            return body
        if len(body) > LOOP_BYTES:
            return await self._pool.run(_encode, self._encoder, body, more=more)
        return _encode(self._encoder, body, more=more)


def _encode(encoder: Encoder, body: bytes, *, more: bool) -> bytes:
    encoded = encoder.compress(body)
    return encoded if more else encoded + encoder.flush()


@lru_cache(maxsize=256)  # clients send a few
def _preferred(accepted: tuple[str, ...]) -> tuple[str, bool]:
    """The coding, and whether nothing that is not encoded is taken."""
    return preferred_encoding(accepted, CODINGS), refuses_identity(accepted)


def _is_final(status: int, headers: Headers) -> bool:
    """Whether an answer is to go as it is, whatever the client takes."""
    media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    kinds = {media_type, media_type.partition("/")[0] + "/*"}
    return "content-encoding" in headers or status == 206 or not kinds.isdisjoint(EXCLUDED)
