"""A collector of spans, as OpenTelemetry's protocol has them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Collector:
    """Keeps the spans that it is sent, with the name of the service that sent them."""

    def __init__(self) -> None:
        self.spans: list[tuple[str, Any]] = []
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                assert self.path == "/v1/traces"
                body = self.rfile.read(int(self.headers["Content-Length"]))
                for sent in ExportTraceServiceRequest.FromString(body).resource_spans:
                    names = {each.key: each.value.string_value for each in sent.resource.attributes}
                    for scope in sent.scope_spans:
                        collector.spans += [(names["service.name"], span) for span in scope.spans]
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: Any) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def tree(self, service: str = "tercet") -> dict[str, list[str]]:
        """The names of spans below each request of a service, in order of their begin."""
        spans = sorted(
            (span for name, span in self.spans if name == service), key=lambda s: s.start_time_unix_nano
        )
        names = {span.span_id: span.name for span in spans}
        tree: dict[str, list[str]] = {}
        for span in spans:
            if span.parent_span_id in names:
                tree.setdefault(names[span.parent_span_id], []).append(span.name)
            else:
                tree.setdefault(span.name, [])
        return tree


@pytest.fixture
def collector() -> Iterator[Collector]:
    """A collector on a free port."""
    collector = Collector()
    thread = threading.Thread(target=collector.server.serve_forever, daemon=True)
    thread.start()
    yield collector
    collector.server.shutdown()
    thread.join()
    collector.server.server_close()
