"""Spans of a search over shards: what the router asks of them is below the search, in whatever thread."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from tercet.cluster.router.app import create_router_app
from tercet.models.encoder import Encoder
from tercet.service.app import create_app
from tercet.service.settings.settings import Settings
from tests.service.conftest import real_server

ROUNDS = ("candidates", "hits")


@pytest.mark.slow
def test_requests_to_shards_are_below_the_search(tmp_path: Path, tiny: Encoder, collector: Any) -> None:
    traced = {"trace_endpoint": collector.url}
    with (
        real_server(create_app(Settings(data=tmp_path / "first", **traced), tiny)) as first,
        real_server(create_app(Settings(data=tmp_path / "second", **traced), tiny)) as second,
    ):
        before = Settings(data=tmp_path / "router", shards=(first, second), **traced)
        with real_server(create_router_app(before, tiny)) as router, httpx.Client(base_url=router) as client:
            assert client.put("/collections/demo", json={"lexical": "idf"}).is_success
            documents = [{"id": f"d{row}", "text": f"tea {row}"} for row in range(12)]
            assert client.put("/collections/demo/documents", json={"documents": documents}).is_success
            assert client.post("/search", json={"collection": "demo", "query": "tea"}).is_success
    spans = [span for _, span in collector.spans]
    (search,) = (span for span in spans if span.name == "POST /search")
    asked = {span.span_id: span for span in spans if span.parent_span_id == search.span_id}
    for operation in ROUNDS:
        calls = [s for s in asked.values() if s.name == f"POST /shard/collections/demo/{operation}"]
        urls = {f"{server}/shard/collections/demo/{operation}" for server in (first, second)}
        assert {s.attributes[0].value.string_value for s in calls} == urls
        served = [s for s in spans if s.name == f"POST /shard/collections/{{name}}/{operation}"]
        assert {s.parent_span_id for s in served} == {s.span_id for s in calls}
        assert {s.trace_id for s in (*calls, *served)} == {search.trace_id}
