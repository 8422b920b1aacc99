"""HTTP/1.1 on the wire, where even what is no HTTP gets the one error shape."""

from __future__ import annotations

import re
import uuid

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from service.errors import Failure

MAX_HEAD_BYTES = 64 * 1024
_END_OF_HEAD = b"\r\n\r\n"
_UPGRADE = re.compile(rb"\r\n(?i:upgrade):[^\r\n]*")


class HttpProtocol(HttpToolsProtocol):
    """Uvicorn's protocol with our answer to bytes it cannot parse, and a limit for heads and trailers."""

    _reads_head = True
    _progressed = False
    _unfinished_bytes = 0

    def data_received(self, data: bytes) -> None:
        """Takes bytes from the connection; a head, or a trailer, that has no end by the limit is refused."""
        self._progressed = False
        super().data_received(_without_upgrade(data) if self._reads_head else data)
        self._unfinished_bytes = 0 if self._progressed else self._unfinished_bytes + len(data)
        if self._unfinished_bytes > MAX_HEAD_BYTES and not self.transport.is_closing():
            limit = f"request line and headers exceed {MAX_HEAD_BYTES} bytes; send fewer or shorter headers"
            self._refuse("413 Content Too Large", Failure(413, limit, "headers_too_large"))

    def on_headers_complete(self) -> None:
        """The head of a request is complete."""
        self._reads_head, self._progressed = False, True
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """A part of a body."""
        self._progressed = True
        super().on_body(body)

    def on_message_complete(self) -> None:
        """A request is complete; the next byte begins another."""
        self._reads_head, self._progressed = True, True
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Answers and closes; no route has seen the request, and nothing after it can be understood."""
        self._refuse("400 Bad Request", Failure(400, "this is no valid HTTP/1.1 request", "invalid_http"))

    def _refuse(self, status: str, failure: Failure) -> None:
        head = (
            f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\n"
            f"content-length: {len(failure.body)}\r\nx-request-id: {uuid.uuid4().hex}\r\n"
            "connection: close\r\n\r\n"
        )
        self.transport.write(head.encode("ascii") + failure.body)
        self.transport.close()


def _without_upgrade(data: bytes) -> bytes:
    """The bytes of a head without an offer of another protocol, such as h2c, which we decline.

    The parser would take the body after such an offer for bytes of that protocol.
    """
    head, end, body = data.partition(_END_OF_HEAD)
    return _UPGRADE.sub(b"", head) + end + body
