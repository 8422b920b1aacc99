"""Begins the trace of each request: its own, or that of who sent it."""

from __future__ import annotations

import time
from collections.abc import Callable

from opentelemetry.trace import NoOpTracer, SpanKind, Tracer

from tercet.service.http.asgi import Scope, header
from tercet.service.http.paths import shown
from tercet.service.tracing.request import PROPAGATOR, RequestTrace

UNTRACED = {"/health", "/ready", "/metrics", "/tei/health"}  # asked every few seconds, and of no interest


class Tracing:
    """The traces of one application. By default none are begun; those of a `traceparent` are passed on."""

    def __init__(self, tracer: Tracer | None = None, close: Callable[[], None] = lambda: None) -> None:
        """close: sends what waits to be sent; it may take some seconds."""
        self._begins = tracer is not None
        self._tracer = NoOpTracer() if tracer is None else tracer
        self.close = close

    def begin(self, scope: Scope, request_id: str) -> RequestTrace | None:
        """The trace of a request, or None where nobody asks for one."""
        parent = header(scope, b"traceparent")
        if (parent is None and not self._begins) or scope["path"] in UNTRACED:
            return None
        carrier = {} if parent is None else {"traceparent": parent}
        if (state := header(scope, b"tracestate")) is not None:
            carrier["tracestate"] = state
        began, epoch_began = time.monotonic(), time.time_ns()
        span = self._tracer.start_span(
            str(scope["method"]),
            PROPAGATOR.extract(carrier),
            SpanKind.SERVER,
            {
                "http.request.method": scope["method"],
                "url.path": shown(scope["path"]),
                "tercet.request_id": request_id,
            },
            start_time=epoch_began,
        )
        trace = RequestTrace(self._tracer, span, began, epoch_began)
        return trace if span.get_span_context().is_valid else None
