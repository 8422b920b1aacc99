"""Bodies of requests, each read once and whole: within a size, a time, and a budget that all share."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from starlette.requests import ClientDisconnect

from tercet.service.edge.ledger import Claim
from tercet.service.exceptions import (
    BodyEncodingError,
    BodyTimeoutError,
    RequestTooLargeError,
)
from tercet.service.http.asgi import Receive, Scope, header, headers
from tercet.service.http.codings import CODINGS, Decoder
from tercet.service.http.negotiation import IDENTITY
from tercet.service.load.pools import Pool

LOOP_BYTES = 1 << 16  # decoded on the event loop; what follows is decoded beside it
PIECE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class BodyLimits:
    """max_bytes: of one body, as it is sent and as it is decoded; seconds: from its head to its end."""

    max_bytes: int
    seconds: float


class Body:
    """The body of one request, on its way."""

    def __init__(
        self, scope: Scope, receive: Receive, limits: BodyLimits, claim: Claim, *, is_here: bool = False
    ) -> None:
        """is_here: whether all of it has arrived, so that no time is set for that."""
        self._scope = scope
        self._receive = receive
        self._limits = limits
        self._claim = claim
        self._is_here = is_here
        self.arriving = _has_body(scope)

    async def piece(self) -> bytes:
        """The next piece as it was sent. Raises ClientDisconnect."""
        message = await self._receive()
        if message["type"] != "http.request":
            raise ClientDisconnect
        self.arriving = bool(message.get("more_body", False))
        return bytes(message.get("body", b""))

    async def next_piece(self) -> bytes:
        """The next piece of a body that is taken as it comes. Each has the time of a whole body.

        Raises BodyTimeoutError, ClientDisconnect, and BodyEncodingError for a body that is encoded.
        """
        coding = _coding(self._scope)
        if coding is not None:
            raise BodyEncodingError(
                f"the body's Content-Encoding is {coding[:100]}; send the file as it is, without one",
                "unsupported_content_encoding",
            )
        try:
            async with asyncio.timeout(self._limits.seconds if self.arriving else None):
                return await self.piece()
        except TimeoutError:
            raise BodyTimeoutError(
                f"no more of the body arrived within {self._limits.seconds:g} s "
                "(setting body_timeout_seconds)"
            ) from None

    async def read(self, pool: Pool) -> bytes:
        """All of it, decoded; pool: where that is done if it is large.

        Raises RequestTooLargeError, BodyTimeoutError, BodyEncodingError, OverloadedError where other bodies
        have the budget, ClientDisconnect.
        """
        max_bytes = self._limits.max_bytes
        announced = header(self._scope, b"content-length")
        if announced is not None and int(announced) > max_bytes:
            raise _too_large(max_bytes)
        coding = _coding(self._scope)
        if coding is None and self._is_here:  # most often; a timer would take longer than to read it
            return await self._plain()
        try:
            async with asyncio.timeout(self._limits.seconds if self.arriving else None):
                return await (self._plain() if coding is None else self._decoded(coding, pool))
        except TimeoutError:
            raise BodyTimeoutError(
                f"the body did not arrive within {self._limits.seconds:g} s (setting body_timeout_seconds)"
            ) from None

    async def _plain(self) -> bytes:
        pieces, size = [], 0
        while True:
            piece = await self.piece()
            size += len(piece)
            if size > self._limits.max_bytes:
                raise _too_large(self._limits.max_bytes)
            self._claim.take_bytes(len(piece))
            pieces.append(piece)
            if not self.arriving:
                return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    async def _decoded(self, given_coding: str, pool: Pool) -> bytes:
        """Each piece is decoded only when the one before has found room, so that the work is bounded, too."""
        decoder: Decoder | None = None
        encoded_bytes, pieces, size = 0, list[bytes](), 0
        while True:
            data = b""
            if decoder is None or decoder.hungry:
                data = await self.piece()
                encoded_bytes += len(data)
                if encoded_bytes > self._limits.max_bytes:  # some streams decode to less than they are
                    raise RequestTooLargeError(
                        f"the body has more than {self._limits.max_bytes} bytes before decompression "
                        "(setting max_body_bytes): split the request"
                    )
                if decoder is None:
                    if not data:
                        if self.arriving:
                            continue
                        return b""
                    decoder = Decoder(_known(given_coding))
            if encoded_bytes + size <= LOOP_BYTES:
                piece = decoder.decode(data, LOOP_BYTES)
            else:
                piece = await pool.run(decoder.decode, data, PIECE_BYTES)
            size += len(piece)
            if size > self._limits.max_bytes:
                raise _too_large(self._limits.max_bytes)
            self._claim.take_bytes(len(piece))
            pieces.append(piece)
            if decoder.hungry and not self.arriving:
                decoder.finish()
                return b"".join(pieces)


def _has_body(scope: Scope) -> bool:
    """Whether the head of a request announces a body."""
    return header(scope, b"transfer-encoding") is not None or header(scope, b"content-length") not in (
        None,
        "0",
    )


def _too_large(max_bytes: int) -> RequestTooLargeError:
    return RequestTooLargeError(
        f"the body is larger than {max_bytes} bytes (setting max_body_bytes): split the request"
    )


def _coding(scope: Scope) -> str | None:
    """How a body is encoded, as its head says; None where it is not."""
    given = headers(scope, b"content-encoding")
    if not given:
        return None
    codings = [coding.strip() for coding in ",".join(given).lower().split(",")]
    return ", ".join(coding for coding in codings if coding not in ("", IDENTITY)) or None


def _known(coding: str) -> str:
    coding = {"x-gzip": "gzip"}.get(coding, coding)
    if coding not in CODINGS:
        raise BodyEncodingError(
            f"the body's Content-Encoding is {coding[:100]}; send one of {', '.join(CODINGS)}, or none",
            "unsupported_content_encoding",
        )
    return coding
