"""A server before an engine: the routes that work, and those that are refused by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tercet.cluster.backends.app import create_backend_app
from tercet.index.snapshot import Snapshot
from tercet.service.app import create_app
from tercet.service.settings.settings import Settings
from tests.service.conftest import real_server


@pytest.fixture(params=["qdrant", "milvus"])
def servers(
    request: Any, make: Callable[[str], Snapshot], engines: Any, tiny: Any, tmp_path: Path
) -> Iterator[tuple[httpx.Client, httpx.Client]]:
    """Clients of a server that has a collection itself, and of one before the engine that holds the same."""
    engines(request.param, make("idf")).close()
    place = tmp_path / ("qdrant" if request.param == "qdrant" else "milvus.db")
    own = Settings(data=tmp_path)
    there = Settings(data=tmp_path / "other", backend=request.param, backend_url=str(place))
    with (
        real_server(create_app(own, tiny)) as own_url,
        real_server(create_backend_app(there, tiny)) as url,
        httpx.Client(base_url=own_url, timeout=60) as first,
        httpx.Client(base_url=url, timeout=60) as second,
    ):
        yield first, second


@pytest.mark.slow
def test_searches_answer_as_those_of_an_own_collection(
    servers: tuple[httpx.Client, httpx.Client], queries: list[str]
) -> None:
    wanted: list[dict[str, Any]] = [
        {},
        {"explain": True, "top_k": 3},
        {"highlight": True, "fusion": "rrf", "weights": {"dense": 1, "sparse": 2, "colbert": 0}},
        {"boosts": [{"filter": {"eq": {"kind": "a"}}, "add": 0.2}], "explain": True},
        {"group_by": "kind", "filter": {"exists": "year"}},
    ]
    for text in queries[:3]:
        for options in wanted:
            answers = []
            for server in servers:
                answer = server.post("/search", json={"collection": "idf", "query": text, **options})
                assert answer.status_code == 200, answer.text
                answers.append(answer.json())
                answers[-1].pop("took_ms")
                answers[-1].pop("snapshot")
                for hit in answers[-1]["hits"]:  # own collections have BM25, too
                    hit["scores"].pop("bm25", None)
                    (hit.get("explanation") or {}).pop("bm25", None)
            assert answers[1]["hits"] == answers[0]["hits"]
            assert answers[1]["query"] == answers[0]["query"]
    like = {"collection": "idf", "query": {"like": ["d/3 é", "d/20 é"], "unlike": ["d/5 é"]}, "top_k": 5}
    found = [server.post("/search", json=like) for server in servers]
    assert found[0].status_code == 200, found[0].text
    assert [hit["id"] for hit in found[1].json()["hits"]] == [hit["id"] for hit in found[0].json()["hits"]]


@pytest.mark.slow
def test_documents_are_read_and_writes_are_refused_by_name(
    servers: tuple[httpx.Client, httpx.Client],
) -> None:
    own, there = servers
    for path in ("d%2F3%20%C3%A9", "d%2F3%20%C3%A9?representations=true", "none"):
        answers = [server.get(f"/collections/idf/documents/{path}") for server in servers]
        assert answers[1].status_code == answers[0].status_code
        assert answers[1].json() == answers[0].json()
    wanted = {"ids": ["d/3 é", "x" * 600, "d/copy"]}
    answers = [server.post("/collections/idf/documents/get", json=wanted) for server in servers]
    assert answers[1].json() == answers[0].json()
    count = {"filter": {"not": {"gte": {"year": 2030}}}}
    answers = [server.post("/collections/idf/documents/count", json=count) for server in servers]
    assert answers[1].json() == answers[0].json()
    listed = there.get("/collections/idf/documents", params={"limit": 1000}).json()
    everything = own.get("/collections/idf/documents", params={"limit": 1000}).json()["documents"]
    assert listed["next"] is None
    assert sorted(listed["documents"], key=lambda each: each["id"].encode()) == everything
    described = there.get("/collections/idf").json()
    assert (described["documents"], described["bm25"], described["lexical"]) == (61, False, "idf")
    assert [each["name"] for each in there.get("/collections").json()["collections"]] == ["idf"]
    document = {"documents": [{"id": "new", "text": "hot tea"}]}
    for method, path, body in (
        ("PUT", "/collections/idf/documents", document),
        ("DELETE", "/collections/idf/documents/d%2F3%20%C3%A9", None),
        ("PATCH", "/collections/idf/documents/d%2F3%20%C3%A9", {"metadata": {}}),
        ("POST", "/collections/idf/documents/delete", {"ids": ["d/3 é"]}),
        ("POST", "/collections/idf/fields", {"fields": {"new": "keyword"}}),
        ("DELETE", "/collections/idf", None),
        ("POST", "/collections/idf/merge", None),
        ("DELETE", "/collections/idf/defaults", None),
        ("PUT", "/aliases/second", {"collections": ["idf", "idf"]}),
        ("POST", "/collections/idf/backups", None),
        ("POST", "/collections/idf/jobs", {"source": "d.jsonl"}),
        ("GET", "/collections/idf/documents?order_by=year", None),
        ("POST", "/search", {"collection": "idf", "query": "tea", "facets": {"kind": 3}}),
        ("POST", "/search", {"collection": "idf", "query": "tea", "min_position": 3}),
    ):
        refused = there.request(method, path, json=body)
        error = refused.json()["error"]
        assert (refused.status_code, error["code"]) == (422, "not_in_backend"), (method, path, error)
        assert "docs/backends.md" in error["message"]
    statistics = there.get("/collections/idf/stats").json()
    assert (statistics["documents"], statistics["segments"]) == (61, 0)
    unknown = there.post("/search", json={"collection": "unknown", "query": "tea"})
    assert unknown.json()["error"]["code"] == "collection_not_found"
    bm25 = there.post("/search", json={"collection": "idf", "query": "tea", "weights": {"bm25": 1}})
    assert (bm25.status_code, bm25.json()["error"]["param"]) == (422, "weights.bm25")
    assert there.get("/metrics").status_code == there.get("/info").status_code == 200
    assert there.post("/embed", json={"inputs": "tea"}).status_code == 200
    reranked = {"query": "tea", "inputs": ["hot tea", "train"], "collection": "idf"}
    answers = [server.post("/rerank", json=reranked).json() for server in servers]
    assert answers[1]["results"] == answers[0]["results"]
