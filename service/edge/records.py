"""What is kept of every request: its log line, its metrics, its trace and its audit entry."""

from __future__ import annotations

import logging
import re
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache

from starlette.routing import BaseRoute, Match

from tercet.service.exceptions import RefusalReason
from tercet.service.http.asgi import Scope, header
from tercet.service.http.paths import shown
from tercet.service.keys.access import Access
from tercet.service.telemetry.audit import AuditLog
from tercet.service.telemetry.metrics import Telemetry
from tercet.service.tracing.facts import Facts
from tercet.service.tracing.request import RequestTrace
from tercet.service.tracing.tracing import Tracing

SANE_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
METHODS = {"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"}
CONVERTOR = re.compile(r":\w+}")  # how a path parameter is read, which the documented path leaves out
CLIENT_LEFT = 499  # the status that logs and metrics show where nobody was left to answer
PATHS = 1024  # of which the routes are kept

log = logging.getLogger("tercet.request")


@dataclass(slots=True)
class Record:
    """One request on its way through. status: of its answer, 0 before that; moments of `time.monotonic`."""

    scope: Scope
    id: str
    started: float
    trace: RequestTrace | None = None
    facts: Facts = field(default_factory=dict)
    status: int = 0
    audited: bool = False

    @property
    def method(self) -> str:
        """One of `METHODS`, or another."""
        return self.scope["method"] if self.scope["method"] in METHODS else "other"

    @property
    def path(self) -> str:
        """As one line without control characters, not endlessly long."""
        path = shown(self.scope["path"])[:500]
        return (
            path if path.isascii() and path.isprintable() else path.encode("unicode_escape").decode("ascii")
        )


class Records:
    """Logs, traces, audits and counts each request once, whatever happens to it."""

    def __init__(
        self, telemetry: Telemetry, routes: Sequence[BaseRoute], traces: Tracing, audit: AuditLog
    ) -> None:
        """routes: those of the application, to name the one of a request that was refused before routing."""
        self._telemetry = telemetry
        self.routes = routes
        self._traces = traces
        self._audit = audit
        self._route_of = lru_cache(maxsize=PATHS)(self._find_route)

    def begin(self, scope: Scope, arrived: float) -> Record:
        """The record of a request, with its id: the one that it brought, or a new one."""
        given = header(scope, b"x-request-id") or ""
        request_id = given if SANE_REQUEST_ID.fullmatch(given) else secrets.token_hex(16)
        scope.setdefault("state", {}).update(request_id=request_id, arrived=arrived)
        self._telemetry.requests_in_progress.inc()
        return Record(scope, request_id, arrived, self._traces.begin(scope, request_id))

    def turned_away(self, scope: Scope, status: int, reason: RefusalReason | None = None) -> str:
        """Keeps a request that was answered at the wire; gives its id. reason: of an answer 429."""
        state = scope.get("state") or {}
        record = self.begin(scope, state.get("arrived", time.monotonic()))
        record.status = status
        if reason is not None:
            self._telemetry.count_refusal(reason)
        self.end(record)
        return record.id

    async def enter(self, record: Record) -> None:
        """Writes the audit entry, if there is to be one, before anything of the answer leaves.

        Raises AuditError where the setting calls it required and it cannot be written.
        """
        if not record.audited:
            record.audited = True
            await self._audit.enter(record.scope, record.method, record.path, record.status, record.facts)

    def end(self, record: Record) -> None:
        """Keeps what the request became."""
        self._telemetry.requests_in_progress.dec()
        record.status = record.status or CLIENT_LEFT
        if not record.audited:  # its client left, but what it asked for may have been done
            record.audited = True
            self._audit.enter_soon(record.scope, record.method, record.path, record.status, record.facts)
        ended = time.monotonic()
        scope = record.scope
        route = (
            _documented(getattr(scope["route"], "path", "unmatched"))
            if "route" in scope
            else self._route_of(scope["path"], scope["method"])
        )
        seconds = ended - record.started
        access: Access | None = scope["state"].get("access")
        key = None if access is None else access.key
        self._telemetry.answered(route, record.method, record.status, seconds, key)
        if log.isEnabledFor(logging.INFO):
            log.info(
                "request",
                extra={
                    "request_id": record.id,
                    "method": record.method,
                    "path": record.path,
                    "status": record.status,
                    "milliseconds": round(seconds * 1000, 2),
                    **({} if key is None else {"key": key}),
                },
            )
        if record.trace is not None:
            record.trace.end(record.method, route, record.status, ended, record.facts)

    def _find_route(self, path: str, method: str) -> str:
        """The documented path of the route that a request would have had."""
        scope = {"type": "http", "path": path, "method": method, "headers": []}
        matching = (route for route in self.routes if route.matches(scope)[0] is not Match.NONE)
        return _documented(getattr(next(matching, None), "path", "unmatched"))


@cache  # a route's path, of which there are few
def _documented(path: str) -> str:
    return CONVERTOR.sub("}", path)
