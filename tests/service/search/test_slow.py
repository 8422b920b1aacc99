"""The log line of slow searches, as a server writes it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tercet.service.telemetry.logs import json_formatter

QUERY = {"collection": "demo", "query": "hot tea", "top_k": 2, "filter": {"eq": {"kind": "drink"}}}


async def slow_lines(
    make_client: Any, caplog: pytest.LogCaptureFixture, query: Any = QUERY, **settings: Any
) -> list[dict[str, Any]]:
    async with make_client(**settings) as client:
        assert (await client.post("/search", json=query, headers={"X-Request-Id": "r-1"})).is_success
    records = [each for each in caplog.records if each.name == "tercet.slow"]
    return [json.loads(json_formatter().format(each)) for each in records]


async def test_a_slow_search_has_a_line_without_its_text(
    make_client: Any, caplog: pytest.LogCaptureFixture
) -> None:
    (line,) = await slow_lines(make_client, caplog, slow_search_seconds=1e-9)
    assert line["level"] == "WARNING"
    assert line["message"].startswith("slow search of demo: encode ")
    assert (line["request_id"], line["collection"], line["snapshot"]) == ("r-1", "demo", "000001")
    assert set(line["took_ms"]) == {"encode", "retrieve", "score", "total"}
    assert (line["tokens"], line["top_k"], line["hits"], line["filtered"]) == (4, 2, 1, True)
    assert line["candidates"] == {"dense": 200, "sparse": 200}
    assert "tea" not in json.dumps(line)


async def test_the_text_is_there_where_asked(make_client: Any, caplog: pytest.LogCaptureFixture) -> None:
    (line,) = await slow_lines(make_client, caplog, slow_search_seconds=1e-9, slow_search_text=True)
    assert line["query"] == "hot tea"


async def test_other_searches_have_none(make_client: Any, caplog: pytest.LogCaptureFixture) -> None:
    assert await slow_lines(make_client, caplog, slow_search_seconds=3600) == []
