"""HTTP/1.1 on the wire, where even what is no HTTP gets the one error shape."""

from __future__ import annotations

import uuid

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from service.errors import Failure

MAX_HEAD_BYTES = 64 * 1024


class HttpProtocol(HttpToolsProtocol):
    """Uvicorn's protocol with our answer to bytes that it cannot parse, and a limit for a request's head."""

    _head_bytes = 0
    _reads_head = True

    def data_received(self, data: bytes) -> None:
        """Takes bytes from the connection; a head that has no end by the limit is refused."""
        super().data_received(data)
        if self._reads_head and not self.transport.is_closing():
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD_BYTES:
                limit = (
                    f"request line and headers exceed {MAX_HEAD_BYTES} bytes; send fewer or shorter headers"
                )
                self._refuse("413 Content Too Large", Failure(413, limit, "headers_too_large"))

    def on_message_begin(self) -> None:
        """A request begins."""
        self._reads_head, self._head_bytes = True, 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """The head of a request is complete."""
        self._reads_head = False
        super().on_headers_complete()

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
