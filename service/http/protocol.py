"""HTTP/1.1 on the wire, where even what is no HTTP gets the one error shape."""

from __future__ import annotations

import uuid

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from service.errors import Failure

MAX_HEAD_BYTES = 64 * 1024  # of a head, or of trailers, that has no end yet


class HttpProtocol(H11Protocol):
    """Uvicorn's protocol with our answer to bytes that it cannot parse.

    The one on h11, since the parser of the faster one takes the body of a request that offers another
    protocol, as Java's client does with h2c, for that protocol's bytes or for a second request.
    """

    def send_400_response(self, msg: str) -> None:
        """Answers and closes; nothing after such bytes can be understood."""
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            problem = f"this is no valid HTTP/1.1 request, or its headers exceed {MAX_HEAD_BYTES} bytes"
            body = Failure(400, problem, "invalid_http").body
            head = (
                "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\n"
                f"content-length: {len(body)}\r\nx-request-id: {uuid.uuid4().hex}\r\n"
                "connection: close\r\n\r\n"
            )
            self.transport.write(head.encode("ascii") + body)
        self.transport.close()

    def _unsupported_upgrade_warning(self) -> None:
        """Says nothing: a client may offer another protocol, and a server may go on with this one."""
