"""HTTP/1.1 on the wire, where even what is no HTTP gets the one error shape."""

from __future__ import annotations

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from service.errors import Failure


class HttpProtocol(HttpToolsProtocol):
    """Uvicorn's protocol with our answer to bytes that it cannot parse."""

    def send_400_response(self, msg: str) -> None:
        """Answers and closes; no route has seen the request, and nothing after it can be understood."""
        body = Failure(400, "this is no valid HTTP/1.1 request", "invalid_http").body
        head = (
            "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode("ascii") + body)
        self.transport.close()
