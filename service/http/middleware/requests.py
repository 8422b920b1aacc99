"""What happens around every request: its id, its log line, its metrics, and the last resort on errors."""

from __future__ import annotations

import asyncio
import logging
import re
import time
import uuid
from collections.abc import Sequence
from functools import cache

from starlette.routing import BaseRoute, Match

from service.errors import INTERNAL
from service.exceptions import BrokenAnswerError
from service.http.asgi import Application, Message, Receive, Scope, Send, header
from service.telemetry import Telemetry

SANE_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
METHODS = {"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"}
CONVERTOR = re.compile(r":\w+}")  # how a path parameter is read, which the documented path leaves out
CLIENT_LEFT = 499  # the status that logs and metrics show where nobody was left to answer

log = logging.getLogger("tercet.request")


class RequestMiddleware:
    """Outermost: gives each request an id, and logs and counts it once, whatever happens inside."""

    def __init__(self, app: Application, telemetry: Telemetry, routes: Sequence[BaseRoute]) -> None:
        """routes: those of the application, to name the one of a request that was refused before routing."""
        self._app = app
        self._telemetry = telemetry
        self._routes = routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = header(scope, b"x-request-id") or ""
        request_id = given if SANE_REQUEST_ID.fullmatch(given) else uuid.uuid4().hex
        scope.setdefault("state", {}).update(request_id=request_id, arrived=time.monotonic())
        status = 0

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), (b"x-request-id", request_id.encode())]
            await send(message)

        # HTTP asks for HEAD wherever GET works; the server's protocol leaves the body out.
        inner = {**scope, "method": "GET"} if scope["method"] == "HEAD" else scope
        started = time.perf_counter()
        self._telemetry.requests_in_progress.inc()
        try:
            await self._app(inner, receive, send_with_id)
        except BrokenAnswerError:  # its connection ends, so that nobody takes it for whole
            log.exception("broken off", extra={"request_id": request_id, "path": _printable(scope["path"])})
        except Exception:
            log.exception("a bug", extra={"request_id": request_id, "path": _printable(scope["path"])})
            if not status:
                await INTERNAL.response()(scope, receive, send_with_id)
            status = 500
        finally:
            self._telemetry.requests_in_progress.dec()
            seconds = time.perf_counter() - started
            # After the answer, which leaves once this task has ended.
            asyncio.get_running_loop().call_soon(
                self._record, scope, request_id, status or CLIENT_LEFT, seconds
            )

    def _record(self, scope: Scope, request_id: str, status: int, seconds: float) -> None:
        method = scope["method"] if scope["method"] in METHODS else "other"
        route = self._template(scope)
        self._telemetry.requests.labels(route, method, str(status)).inc()
        self._telemetry.request_seconds.labels(route, str(status)).observe(seconds)
        log.info(
            "request",
            extra={
                "request_id": request_id,
                "method": method,
                "path": _printable(scope["path"]),
                "status": status,
                "milliseconds": round(seconds * 1000, 2),
            },
        )

    def _template(self, scope: Scope) -> str:
        """The path of the request's route, with its parameters by name."""
        matching = (route for route in self._routes if route.matches(scope)[0] is not Match.NONE)
        return _documented(getattr(scope.get("route") or next(matching, None), "path", "unmatched"))


@cache  # a route's path, of which there are few
def _documented(path: str) -> str:
    return CONVERTOR.sub("}", path)


def _printable(path: str) -> str:
    """The path as one line without control characters, not endlessly long."""
    return path[:500].encode("unicode_escape").decode("ascii")
