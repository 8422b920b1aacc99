"""The trace of the request at hand: which of its work took how long, and what is passed on of it.

Anything that works for a request may record a span here. Where nobody traces the request, that is one look
at a variable. A span is recorded once it has ended, so that a stage which no task sees as a whole, such as
the wait in a queue, has one too.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal

from opentelemetry.context import Context
from opentelemetry.trace import (
    Span,
    SpanKind,
    Status,
    StatusCode,
    Tracer,
    format_span_id,
    format_trace_id,
    set_span_in_context,
)
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from tercet.service.tracing.facts import Facts

Stage = Literal["tokenize", "queue", "encode", "retrieve", "score", "explain", "write", "respond"]

PROPAGATOR = TraceContextTextMapPropagator()

_current: ContextVar[RequestTrace | None] = ContextVar("trace", default=None)


class RequestTrace:
    """The span of a request, and where its stages are recorded below it. Moments are of `time.monotonic`."""

    def __init__(self, tracer: Tracer, span: Span, began: float, epoch_began: int) -> None:
        """began, epoch_began: one moment, of the monotonic clock and in nanoseconds since 1970."""
        self._tracer = tracer
        self._monotonic_began, self._epoch_began = began, epoch_began
        self._span = span
        self._context: Context = set_span_in_context(span)
        self._stages_ended = began
        self.recording = span.is_recording()

    @property
    def ids(self) -> dict[str, str]:
        """`trace_id` and `span_id` in W3C's form, as logs name them."""
        context = self._span.get_span_context()
        return {"trace_id": format_trace_id(context.trace_id), "span_id": format_span_id(context.span_id)}

    def add(self, stage: Stage, began: float, ended: float) -> None:
        """Records a stage that has ended."""
        span = self._tracer.start_span(stage, self._context, start_time=self._epoch(began))
        span.end(self._epoch(ended))
        self._stages_ended = max(self._stages_ended, ended)

    @contextmanager
    def call(self, name: str, server: str) -> Iterator[dict[str, str]]:
        """A span of a request to another server, around it; gives the headers that pass the trace on."""
        span = self._tracer.start_span(name, self._context, SpanKind.CLIENT, {"url.full": server})
        headers: dict[str, str] = {}
        PROPAGATOR.inject(headers, set_span_in_context(span))
        try:
            yield headers
        except BaseException as error:
            span.set_status(Status(StatusCode.ERROR, type(error).__name__))
            raise
        finally:
            span.end()
            self._stages_ended = time.monotonic()

    def end(self, method: str, route: str, status: int, ended: float, facts: Facts) -> None:
        """Ends the span of the request. What came after its last stage is that of responding.

        facts: what is known of the request, such as its collection.
        """
        if not self.recording:
            return
        self.add("respond", self._stages_ended, ended)
        self._span.update_name(f"{method} {route}")
        self._span.set_attributes({"http.route": route, "http.response.status_code": status})
        self._span.set_attributes({f"tercet.{name}": fact for name, fact in facts.items()})
        if status >= 500:
            self._span.set_status(Status(StatusCode.ERROR))
        self._span.end(self._epoch(ended))

    def _epoch(self, moment: float) -> int:
        """A moment in nanoseconds since 1970, by one reading of both clocks, so that order stays."""
        return self._epoch_began + int((moment - self._monotonic_began) * 1e9)


@contextmanager
def tracing(trace: RequestTrace | None) -> Iterator[None]:
    """What runs inside, and the tasks begun there, works for this trace's request."""
    token = _current.set(trace)
    try:
        yield
    finally:
        _current.reset(token)


def trace_ids() -> dict[str, str]:
    """The ids of the trace at hand, none outside of one."""
    trace = _current.get()
    return {} if trace is None else trace.ids


def record(stage: Stage, began: float, ended: float | None = None) -> None:
    """Records a stage of the request at hand. ended: by default now."""
    trace = _current.get()
    if trace is not None and trace.recording:
        trace.add(stage, began, time.monotonic() if ended is None else ended)


@contextmanager
def recorded(stage: Stage) -> Iterator[None]:
    """What runs inside is this stage of the request at hand."""
    began = time.monotonic()
    try:
        yield
    finally:
        record(stage, began)


@contextmanager
def call(name: str, server: str) -> Iterator[dict[str, str]]:
    """A request to another server: a span around it, and the headers that pass the trace at hand on."""
    trace = _current.get()
    if trace is None:
        yield {}
        return
    with trace.call(name, server) as headers:
        yield headers
