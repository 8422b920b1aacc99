"""Pages of other origins: which of them browsers let read answers, and send more than simple requests (CORS).

https://fetch.spec.whatwg.org/#http-cors-protocol
"""

from __future__ import annotations

from collections.abc import Sequence

from fastapi import Response
from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware

from tercet.service.http.asgi import RawHeaders, Receive, Scope, Send, header

METHODS = ("DELETE", "GET", "HEAD", "PATCH", "POST", "PUT")
KEPT_SECONDS = 600  # how long a browser keeps the answer to a preflight
READABLE = ("Tercet-Version", "X-Request-Id", "Retry-After", "Link")


class CrossOrigin:
    """The origins that a server trusts beside its own; with none of them it says nothing of origins."""

    def __init__(self, origins: Sequence[str] = ()) -> None:
        """origins: such as `https://app.example.com`; `*` is any."""
        self._any = "*" in origins
        self._origins = frozenset(origins)
        self._rules = CORSMiddleware(
            _nothing,
            allow_origins=origins,
            allow_methods=METHODS,
            allow_headers=["*"],
            allow_private_network=True,
            max_age=KEPT_SECONDS,
        )
        self._readable = (b"access-control-expose-headers", ", ".join(READABLE).encode())

    def allows(self, origin: str) -> bool:
        """Whether a page of this origin may do what those of the server may."""
        return self._any or origin.lower() in self._origins

    def preflight(self, scope: Scope) -> Response | None:
        """The answer to a browser that asks before a page's request; None to any other request, and where
        the page's origin is not allowed.
        """
        if not is_preflight(scope):
            return None
        origin = header(scope, b"origin")
        return (
            self._rules.preflight_response(Headers(scope=scope)) if origin and self.allows(origin) else None
        )

    def headers(self, scope: Scope) -> RawHeaders:
        """What an answer bears so that the page may read it."""
        if not self._origins or is_preflight(scope):
            return ()
        if self._any:
            return (b"access-control-allow-origin", b"*"), self._readable
        vary = b"vary", b"Origin"  # to whoever asks: a cache may keep the answer for others
        origin = header(scope, b"origin")
        if origin is None or not self.allows(origin):
            return (vary,)
        return vary, (b"access-control-allow-origin", origin.encode("latin-1")), self._readable


def is_preflight(scope: Scope) -> bool:
    """Whether a browser asks what a page may send."""
    return scope["method"] == "OPTIONS" and header(scope, b"access-control-request-method") is not None


async def _nothing(_scope: Scope, _receive: Receive, _send: Send) -> None:
    """What the rules would stand before."""
