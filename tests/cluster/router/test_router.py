"""The router over HTTP answers as one server that has all documents."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from cluster.router.app import create_router_app
from models.encoder import Encoder
from service.app import create_app
from service.settings import Settings
from tests.cluster.router.corpora import uneven_corpus
from tests.service.conftest import real_server

COLLECTION = {
    "fields": {"year": "integer", "tags": "keyword", "kind": "keyword", "new": "boolean"},
    "bm25": True,
    "lexical": "idf",
    "dense_kind": "flat",
}
QUERIES: list[dict[str, Any]] = [
    {"query": "green tea"},
    {"query": "train station", "explain": True, "top_k": 3},
    {
        "query": "hot water",
        "weights": {"bm25": 1},
        "explain": True,
        "boosts": [{"filter": {"eq": {"new": True}}, "add": 0.2}],
    },
    {"query": "black tea", "highlight": True, "group_by": "kind"},
    {"query": "tea", "facets": {"tags": 2, "kind": 9, "new": 2}, "filter": {"gte": {"year": 2003}}},
    {"query": {"id": "d3.0"}, "top_k": 5},
    {"query": {"like": ["d3.0", "d5.0"], "unlike": ["d8.0"]}, "weights": {"bm25": 0.5}},
    {"queries": ["tea", "the rail", {"id": "d3.0"}], "fusion": "rrf", "top_k": 4},
    {"query": "leaf", "offset": 3, "top_k": 4, "min_score": 0.1, "include": ["scores"]},
    {"query": "leaf", "search_after": {"score": 1.0, "id": "d5"}},
    {"query": "steam", "candidates": {"dense": 5, "sparse": 3}},
]


@pytest.fixture(scope="module")
def urls(tmp_path_factory: pytest.TempPathFactory, tiny: Encoder) -> Iterator[tuple[str, str]]:
    """The addresses of a router over two shards, and of a server with the same documents, all written live."""
    root = tmp_path_factory.mktemp("servers")
    documents, _ = uneven_corpus(60, 3, 1)
    with ExitStack() as stack:

        def served(name: str, **settings: Any) -> str:
            create = create_router_app if "shards" in settings else create_app
            return stack.enter_context(
                real_server(create(Settings(data=root / name, port=0, **settings), tiny))
            )

        one = served("one")
        router = served("router", shards=",".join([served("first"), served("second")]))
        with httpx.Client(timeout=60) as client:
            for url in (one, router):
                assert client.put(f"{url}/collections/demo", json=COLLECTION).status_code == 201
                written = [
                    {"id": each.id, "text": each.text, "title": each.title, "metadata": each.metadata}
                    for each in documents
                ]
                for start in range(0, 60, 25):
                    body = {"documents": written[start : start + 25]}
                    answer = client.put(f"{url}/collections/demo/documents", json=body)
                    assert answer.status_code == 200, answer.text
        yield router, one


def test_answers_are_those_of_one_server(urls: tuple[str, str]) -> None:
    for query in QUERIES:
        body = {"collection": "demo", **query}
        found, expected = (httpx.post(f"{url}/search", json=body, timeout=60) for url in urls)
        assert expected.status_code == 200, expected.text
        assert found.status_code == 200, (query, found.text)
        assert _told(found.json()) == _told(expected.json()), query


def _told(answer: dict[str, Any]) -> dict[str, Any]:
    """All that does not tell of time or version."""
    left_out = ("took_ms", "snapshot")
    told = {name: value for name, value in answer.items() if name not in left_out}
    if "results" in told:
        told["results"] = [_told(each) for each in told["results"]]
    return told
