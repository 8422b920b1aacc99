"""What happens around every request: its id, its log line, its metrics, and the last resort on errors."""

from __future__ import annotations

import asyncio
import logging
import re
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

from starlette.routing import BaseRoute, Match

from service.audit import AuditLog
from service.errors import INTERNAL
from service.exceptions import BrokenAnswerError
from service.facts import Facts, gathering
from service.http.asgi import Application, Message, Receive, Scope, Send, header
from service.telemetry import Telemetry
from service.tracing.request import RequestTrace, tracing
from service.tracing.tracing import Tracing

SANE_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
METHODS = {"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"}
CONVERTOR = re.compile(r":\w+}")  # how a path parameter is read, which the documented path leaves out
CLIENT_LEFT = 499  # the status that logs and metrics show where nobody was left to answer

log = logging.getLogger("tercet.request")


@dataclass(slots=True)
class _Request:
    """One request on its way through. status: of its answer, 0 before that."""

    id: str
    trace: RequestTrace | None
    facts: Facts
    started: float = field(default_factory=time.monotonic)
    status: int = 0
    audited: bool = False


class RequestMiddleware:
    """Outermost: gives each request an id, and logs, traces, audits and counts it once, whatever happens."""

    def __init__(
        self,
        app: Application,
        telemetry: Telemetry,
        routes: Sequence[BaseRoute],
        traces: Tracing,
        audit: AuditLog,
    ) -> None:
        """routes: those of the application, to name the one of a request that was refused before routing."""
        self._app = app
        self._telemetry = telemetry
        self._routes = routes
        self._traces = traces
        self._audit = audit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = header(scope, b"x-request-id") or ""
        request_id = given if SANE_REQUEST_ID.fullmatch(given) else uuid.uuid4().hex
        scope.setdefault("state", {}).update(request_id=request_id, arrived=time.monotonic())
        trace = self._traces.begin(scope, request_id)
        with tracing(trace), gathering() as facts:
            await self._answer(scope, receive, send, _Request(request_id, trace, facts))

    async def _answer(self, scope: Scope, receive: Receive, send: Send, request: _Request) -> None:
        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                request.status = message["status"]
                message["headers"] = [*message.get("headers", ()), (b"x-request-id", request.id.encode())]
                self._enter(scope, request)
            await send(message)

        # HTTP asks for HEAD wherever GET works; the server's protocol leaves the body out.
        inner = {**scope, "method": "GET"} if scope["method"] == "HEAD" else scope
        self._telemetry.requests_in_progress.inc()
        try:
            await self._app(inner, receive, send_with_id)
        except BrokenAnswerError:  # its connection ends, so that nobody takes it for whole
            log.exception("broken off", extra={"request_id": request.id, "path": _printable(scope["path"])})
        except Exception:
            log.exception("a bug", extra={"request_id": request.id, "path": _printable(scope["path"])})
            if not request.status:
                await INTERNAL.response()(scope, receive, send_with_id)
            request.status = 500
        finally:
            self._telemetry.requests_in_progress.dec()
            request.status = request.status or CLIENT_LEFT
            # After the answer, which leaves once this task has ended.
            asyncio.get_running_loop().call_soon(self._record, scope, request, time.monotonic())

    def _enter(self, scope: Scope, request: _Request) -> None:
        """Writes the audit entry, if there is to be one, before anything of the answer leaves."""
        if not request.audited:
            request.audited = True
            self._audit.enter(scope, _method(scope), _printable(scope["path"]), request.status, request.facts)

    def _record(self, scope: Scope, request: _Request, ended: float) -> None:
        self._enter(scope, request)  # its client left, but what it asked for may have been done
        method, route = _method(scope), self._template(scope)
        seconds = ended - request.started
        self._telemetry.requests.labels(route, method, str(request.status)).inc()
        self._telemetry.request_seconds.labels(route, str(request.status)).observe(seconds)
        log.info(
            "request",
            extra={
                "request_id": request.id,
                "method": method,
                "path": _printable(scope["path"]),
                "status": request.status,
                "milliseconds": round(seconds * 1000, 2),
            },
        )
        if request.trace is not None:
            request.trace.end(method, route, request.status, ended, request.facts)

    def _template(self, scope: Scope) -> str:
        """The path of the request's route, with its parameters by name."""
        matching = (route for route in self._routes if route.matches(scope)[0] is not Match.NONE)
        return _documented(getattr(scope.get("route") or next(matching, None), "path", "unmatched"))


def _method(scope: Scope) -> str:
    return scope["method"] if scope["method"] in METHODS else "other"


@cache  # a route's path, of which there are few
def _documented(path: str) -> str:
    return CONVERTOR.sub("}", path)


def _printable(path: str) -> str:
    """The path as one line without control characters, not endlessly long."""
    return path[:500].encode("unicode_escape").decode("ascii")
