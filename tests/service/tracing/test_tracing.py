"""Spans of requests to real servers, as a collector gets them."""

from __future__ import annotations

import builtins
import json
import logging
import socket
import time
from itertools import pairwise
from typing import Any

import httpx
import pytest

from tercet.service.app import create_app, create_worker_app
from tercet.service.exceptions import SettingsError
from tercet.service.settings.reading import load_settings
from tercet.service.settings.settings import Settings
from tercet.service.telemetry.logs import TextFormatter, TraceFilter, json_formatter

pytestmark = pytest.mark.slow

TRACE = "0af7651916cd43dd8448eb211c80319c"
SPAN = "b7ad6b7169203331"
SAMPLED = {"traceparent": f"00-{TRACE}-{SPAN}-01"}
NOT_SAMPLED = {"traceparent": f"00-{TRACE}-{SPAN}-00"}
QUERY = {"collection": "demo", "query": "hot tea"}


def attributes(span: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in span.attributes}


def test_stages_of_a_search_are_spans_below_its_request(make_server: Any, collector: Any) -> None:
    with make_server(trace_endpoint=collector.url) as url:
        answer = httpx.post(f"{url}/search", json=QUERY)
        assert answer.status_code == 200
    assert collector.tree() == {
        "POST /search": ["tokenize", "queue", "encode", "queue", "retrieve", "score", "respond"]
    }
    spans = [span for _, span in collector.spans]
    (request,) = (span for span in spans if span.name == "POST /search")
    known = attributes(request)
    assert known == {
        "http.request.method": "POST",
        "url.path": "/search",
        "http.route": "/search",
        "http.response.status_code": 200,
        "tercet.request_id": answer.headers["X-Request-Id"],
        "tercet.collection": "demo",
        "tercet.snapshot": answer.json()["snapshot"],
        "tercet.hits": 5,
    }
    stages = sorted((s for s in spans if s is not request), key=lambda s: s.start_time_unix_nano)
    assert request.start_time_unix_nano <= stages[0].start_time_unix_nano
    assert stages[-1].end_time_unix_nano <= request.end_time_unix_nano
    for before, after in pairwise(stages):
        assert before.start_time_unix_nano <= before.end_time_unix_nano <= after.start_time_unix_nano
    took = answer.json()["took_ms"]
    score = next(s for s in stages if s.name == "score")
    score_ms = (score.end_time_unix_nano - score.start_time_unix_nano) / 1e6
    assert score_ms == pytest.approx(took["score"], abs=1)


def test_requests_of_other_kinds(make_server: Any, collector: Any) -> None:
    with make_server(trace_endpoint=collector.url) as url, httpx.Client(base_url=url) as client:
        assert client.post("/rerank", json={"query": "tea", "inputs": ["green tea"]}).is_success
        document = {"documents": [{"id": "new", "text": "hot water"}]}
        assert client.put("/collections/demo/documents", json=document).is_success
        assert client.post("/search", json={**QUERY, "explain": True}).is_success
        assert client.post("/search", json={**QUERY, "collection": "none"}).status_code == 404
        for quiet in ("/health", "/ready", "/metrics"):
            client.get(quiet)
    tree = collector.tree()
    assert set(tree) == {"POST /rerank", "PUT /collections/{name}/documents", "POST /search"}
    assert tree["POST /rerank"].count("encode") == 2
    assert "score" in tree["POST /rerank"]
    written = "PUT /collections/{name}/documents"
    assert tree[written] == ["tokenize", "queue", "encode", "write", "respond"]
    (put,) = (attributes(span) for _, span in collector.spans if span.name == written)
    assert (put["tercet.documents"], put["tercet.position"]) == (1, 1)
    assert tree["POST /search"].count("explain") == 1
    statuses = [
        attributes(span)["http.response.status_code"]
        for _, span in collector.spans
        if span.name == "POST /search"
    ]
    assert sorted(statuses) == [200, 404]


def test_a_worker_goes_on_with_the_trace(make_server: Any, data: Any, serve: Any, collector: Any) -> None:
    with make_server(create=create_worker_app, trace_endpoint=collector.url) as worker:
        settings = Settings(data=data, encoder_urls=worker, trace_endpoint=collector.url, trace_sampling=0)
        with serve(create_app(settings)) as url:
            assert httpx.post(f"{url}/search", json=QUERY, headers=SAMPLED).is_success
    spans = [span for _, span in collector.spans if span.trace_id.hex() == TRACE]
    by_name = {span.name: span for span in spans}
    assert by_name["POST /search"].parent_span_id.hex() == SPAN
    calls = [span for service, span in collector.spans if service == "tercet" and span.name == "POST /embed"]
    (call,) = (span for span in calls if span.trace_id.hex() == TRACE)
    assert call.parent_span_id == by_name["POST /search"].span_id
    assert attributes(call)["url.full"] == f"{worker}/embed"
    (worked,) = (
        span
        for service, span in collector.spans
        if service == "tercet-encoder" and span.parent_span_id == call.span_id
    )
    below = [span.name for span in spans if span.parent_span_id == worked.span_id]
    assert sorted(below) == ["encode", "queue", "respond", "tokenize"]


def test_sampling_follows_the_caller_and_else_the_setting(make_server: Any, collector: Any) -> None:
    with make_server(trace_endpoint=collector.url, trace_sampling=0) as url:
        assert httpx.post(f"{url}/search", json=QUERY).is_success
        assert httpx.post(f"{url}/search", json=QUERY, headers=NOT_SAMPLED).is_success
    assert collector.spans == []
    with make_server(trace_endpoint=collector.url) as url:
        assert httpx.post(f"{url}/search", json=QUERY, headers=NOT_SAMPLED).is_success
        bad = {"traceparent": "00-nothing-01"}
        assert httpx.post(f"{url}/search", json=QUERY, headers=bad).is_success
    traces = {span.trace_id.hex() for _, span in collector.spans}
    assert len(traces) == 1
    assert TRACE not in traces


def test_log_lines_of_a_request_bear_its_trace(
    make_server: Any, collector: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.handler.addFilter(TraceFilter())
    caplog.set_level("INFO", "tercet")
    with make_server() as url:  # without spans of its own
        httpx.post(f"{url}/search", json=QUERY, headers=NOT_SAMPLED)
        httpx.get(f"{url}/info")
    with make_server(trace_endpoint=collector.url, slow_search_seconds=1e-9) as url:
        httpx.post(f"{url}/search", json=QUERY, headers=SAMPLED)
    lines = [json.loads(json_formatter().format(each)) for each in caplog.records]
    foreign, none, ours = (
        each for each in lines if each["message"] == "request" and each["path"] in ("/search", "/info")
    )
    assert (foreign["trace_id"], foreign["span_id"]) == (TRACE, SPAN)
    assert "trace_id" not in none
    (request,) = (span for _, span in collector.spans if span.name == "POST /search")
    assert (ours["trace_id"], ours["span_id"]) == (TRACE, request.span_id.hex())
    (slow,) = (each for each in lines if each["logger"] == "tercet.slow")
    assert slow["trace_id"] == TRACE
    record = next(each for each in caplog.records if hasattr(each, "trace_id"))
    assert f"trace_id={TRACE}" in TextFormatter().format(record)


def test_a_collector_that_is_gone_holds_nothing_up(
    make_server: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tercet.service.tracing.export.FLUSH_SECONDS", 0.1)
    caplog.set_level(logging.CRITICAL, "opentelemetry")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with make_server(trace_endpoint=f"http://127.0.0.1:{port}") as url:
        assert httpx.post(f"{url}/search", json=QUERY).is_success
        began = time.monotonic()
    assert time.monotonic() - began < 20  # where the SDK itself waits for 30 seconds


def test_what_sends_spans_must_be_installed(
    monkeypatch: pytest.MonkeyPatch, make_app: Any, collector: Any
) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any) -> Any:
        if name == "tercet.service.tracing.export":
            raise ImportError("No module named 'opentelemetry.sdk'")
        return real(name, *args)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(SettingsError, match=r"trace_endpoint needs the extra otel"):
        make_app(trace_endpoint=collector.url)


def test_settings_are_checked() -> None:
    with pytest.raises(SettingsError, match=r"trace_endpoint .*: 'collector:4318' is not a URL"):
        load_settings({"trace_endpoint": "collector:4318"})
    with pytest.raises(SettingsError, match="trace_sampling"):
        load_settings({"trace_sampling": 1.5})
