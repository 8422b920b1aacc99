"""Turns requests away by their heads, before anything else of theirs is looked at."""

from __future__ import annotations

from service.errors import Failure
from service.http.asgi import Application, Receive, Scope, Send, header
from service.http.hosts import AllowedHosts
from service.http.paths import problem_of_target

READING = {"GET", "HEAD", "OPTIONS"}
CLOSING = (("Connection", "close"),)


class HeadMiddleware:
    """Refuses heads that two servers might read differently, targets that are no text, foreign hosts, and
    writes of foreign pages.
    """

    def __init__(self, app: Application, hosts: AllowedHosts) -> None:
        self._app = app
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        failure = self._failure(scope) if scope["type"] == "http" else None
        if failure is None:
            await self._app(scope, receive, send)
        else:
            await failure.response()(scope, receive, send)

    def _failure(self, scope: Scope) -> Failure | None:
        if header(scope, b"content-length") is not None and header(scope, b"transfer-encoding") is not None:
            problem = "the head has both Content-Length and Transfer-Encoding; send one of them"
            return Failure(400, problem, "invalid_http", headers=CLOSING)
        not_text = problem_of_target(scope)
        if not_text is not None:
            return Failure(400, not_text, "not_utf8")
        hosts = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
        if len(hosts) != 1:
            return Failure(400, f"the head has {len(hosts)} Host headers; send one", "invalid_http")
        (host,) = hosts
        if not self._hosts.serves(host):
            problem = f"this server is not called {host[:200]!r}; name it in the setting allowed_hosts"
            return Failure(403, problem, "host_not_allowed")
        origin = header(scope, b"origin")
        if origin is not None and scope["method"] not in READING and not self._hosts.trusts(origin, host):
            problem = (
                f"pages of {origin[:200]!r} may not do this; name their host in the setting allowed_hosts"
            )
            return Failure(403, problem, "origin_not_allowed")
        return None
