"""Bodies of requests that come compressed, decoded within bounds."""

from __future__ import annotations

from starlette.datastructures import Headers

from service.exceptions import BodyEncodingError, RequestTooLargeError
from service.http.asgi import Application, Message, Receive, Scope, Send
from service.http.codings import CODINGS, Decoder
from service.http.negotiation import IDENTITY
from service.load.pools import Pool

LOOP_BYTES = 1 << 16  # decoded on the event loop; what follows is decoded beside it
PIECE_BYTES = 1 << 20


class RequestEncodingMiddleware:
    """Gives the application decoded bodies, each piece only when it asks for more.

    So who counts bytes, as the routes do, bounds the work too. Raises in who reads: BodyEncodingError for an
    unknown coding or a damaged stream, RequestTooLargeError where more than `max_bytes` came encoded.
    """

    def __init__(self, app: Application, max_bytes: int, pool: Pool) -> None:
        self._app = app
        self._max_bytes = max_bytes
        self._pool = pool

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            given = ",".join(Headers(scope=scope).getlist("content-encoding")).lower()
            codings = [coding.strip() for coding in given.split(",")]
            codings = [coding for coding in codings if coding not in ("", IDENTITY)]
            if codings:
                receive = _Decoded(codings, receive, self._max_bytes, self._pool).receive
        await self._app(scope, receive, send)


class _Decoded:
    """The body of one request."""

    def __init__(self, codings: list[str], receive: Receive, max_bytes: int, pool: Pool) -> None:
        self._codings = codings
        self._receive = receive
        self._max_bytes = max_bytes
        self._pool = pool
        self._decoder: Decoder | None = None
        self._arriving = True
        self._encoded_bytes = 0
        self._decoded_bytes = 0

    async def receive(self) -> Message:
        """The body's next piece."""
        while True:
            data = b""
            if self._decoder is None or self._decoder.hungry:
                message = await self._receive()
                if message["type"] != "http.request":
                    return message
                data = message.get("body", b"")
                self._arriving = message.get("more_body", False)
                if self._decoder is None:
                    if not data:
                        return message
                    self._decoder = Decoder(self._known_coding())
            piece = await self._decode(self._decoder, data)
            whole = self._decoder.hungry and not self._arriving
            if whole:
                self._decoder.finish()
            if piece or whole:
                return {"type": "http.request", "body": piece, "more_body": not whole}

    async def _decode(self, decoder: Decoder, data: bytes) -> bytes:
        self._encoded_bytes += len(data)
        if self._encoded_bytes > self._max_bytes:  # some streams decode to less than they are
            raise RequestTooLargeError(
                f"the body has more than {self._max_bytes} bytes before decompression "
                "(setting max_body_bytes): split the request"
            )
        if self._encoded_bytes + self._decoded_bytes <= LOOP_BYTES:
            piece = decoder.decode(data, LOOP_BYTES)
        else:
            piece = await self._pool.run(decoder.decode, data, PIECE_BYTES)
        self._decoded_bytes += len(piece)
        return piece

    def _known_coding(self) -> str:
        coding = ", ".join(self._codings)
        coding = {"x-gzip": "gzip"}.get(coding, coding)
        if coding not in CODINGS:
            raise BodyEncodingError(
                f"the body's Content-Encoding is {coding[:100]}; send one of {', '.join(CODINGS)}, or none",
                "unsupported_content_encoding",
            )
        return coding
