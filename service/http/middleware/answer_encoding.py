"""Answers compressed for clients that take them so."""

from __future__ import annotations

from functools import cached_property

from starlette.datastructures import Headers
from starlette.middleware.gzip import DEFAULT_EXCLUDED_CONTENT_TYPES, IdentityResponder

from service.answers.binary import MEDIA_TYPE
from service.http.asgi import Application, Message, Receive, Scope, Send
from service.http.codings import CODINGS, Encoder, encoder_of
from service.http.negotiation import IDENTITY, preferred_encoding, refuses_identity
from service.load.pools import Pool

MIN_BYTES = 1024  # a smaller answer is one packet either way
LOOP_BYTES = 1 << 15  # encoded on the event loop, for less than half a millisecond
# Float vectors shrink by a twelfth, which takes longer than sending that at a gigabit.
NO_TRANSFORM = "no-transform"
EXCLUDED = (*DEFAULT_EXCLUDED_CONTENT_TYPES, MEDIA_TYPE)


class AnswerEncodingMiddleware:
    """Encodes whole answers of some size, and streams piece by piece, as `Accept-Encoding` prefers."""

    def __init__(self, app: Application, pool: Pool) -> None:
        self._app = app
        self._pool = pool

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        accepted = Headers(scope=scope).getlist("accept-encoding")
        coding = preferred_encoding(accepted, CODINGS)
        min_bytes = 1 if refuses_identity(accepted) else MIN_BYTES
        responder = (
            IdentityResponder(self._app, min_bytes, exclude_content_types=EXCLUDED)
            if coding == IDENTITY
            else _EncodingResponder(self._app, min_bytes, coding, self._pool)
        )
        await responder(scope, receive, send)


class _EncodingResponder(IdentityResponder):
    """Starlette's responder takes care of messages and headers; without a coding it adds `Vary` alone."""

    def __init__(self, app: Application, min_bytes: int, coding: str, pool: Pool) -> None:
        super().__init__(app, min_bytes, exclude_content_types=EXCLUDED)
        self.content_encoding = coding
        self._pool = pool
        self._untouched = False

    async def send_with_compression(self, message: Message) -> None:
        """An answer that is not to be transformed goes on as it is, unless the client refuses that."""
        if message["type"] == "http.response.start" and self.minimum_size > 1:
            self._untouched = NO_TRANSFORM in Headers(raw=message["headers"]).get("cache-control", "")
        await (self.send(message) if self._untouched else super().send_with_compression(message))

    @cached_property
    def _encoder(self) -> Encoder:
        return encoder_of(self.content_encoding)

    async def apply_compression(self, body: bytes, *, more_body: bool) -> bytes:
        """The next piece of the answer, encoded; empty where the encoder waits for more."""
        if len(body) > LOOP_BYTES:
            return await self._pool.run(self._encode, body, more_body)
        return self._encode(body, more_body)

    def _encode(self, body: bytes, more_body: bool) -> bytes:
        encoded = self._encoder.compress(body)
        return encoded if more_body else encoded + self._encoder.flush()
