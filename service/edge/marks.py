"""What every answer bears, also one that is made at the wire."""

from __future__ import annotations

from importlib.metadata import version

from tercet.service.edge.cross_origin import CrossOrigin
from tercet.service.http.asgi import RawHeaders, Scope


class Marks:
    """The request's id, the server's version, and what pages of other origins need."""

    def __init__(self, cross_origin: CrossOrigin) -> None:
        self._cross_origin = cross_origin
        self._version = b"tercet-version", version("tercet").encode()

    def of(self, scope: Scope, request_id: str) -> RawHeaders:
        """The headers of the answer to a request."""
        return (b"x-request-id", request_id.encode()), self._version, *self._cross_origin.headers(scope)

    def of_none(self, request_id: str) -> RawHeaders:
        """Those of the answer to what is no request."""
        return (b"x-request-id", request_id.encode()), self._version
