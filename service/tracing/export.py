"""Sends spans to a collector by OTLP over HTTP, in the background (extra `otel`)."""

from __future__ import annotations

import threading
from importlib.metadata import version

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased

from tercet.service.tracing.tracing import Tracing

FLUSH_SECONDS = 5.0  # the longest that the end of a server waits for its last spans to be sent


def exported(endpoint: str, sampling: float, service: str) -> Tracing:
    """Tracing whose spans go to a collector; those that it does not take in time are dropped.

    endpoint: its address, such as http://localhost:4318. sampling: share of requests to trace, of those that
    bring no decision of their own. service: the service's name, unless OTEL_SERVICE_NAME or
    OTEL_RESOURCE_ATTRIBUTES has one.
    """
    ours = Resource.create({SERVICE_NAME: service, SERVICE_VERSION: version("tercet")})
    provider = TracerProvider(
        sampler=ParentBased(TraceIdRatioBased(sampling)),
        resource=ours.merge(OTELResourceDetector().detect()),
        shutdown_on_exit=False,
    )
    provider.add_span_processor(
        BatchSpanProcessor(OTLPSpanExporter(endpoint=f"{endpoint.rstrip('/')}/v1/traces"))
    )

    def close() -> None:
        # The SDK waits for half a minute where a collector is gone.
        sending = threading.Thread(target=provider.shutdown, name="last spans", daemon=True)
        sending.start()
        sending.join(FLUSH_SECONDS)

    return Tracing(provider.get_tracer("tercet", version("tercet")), close)
